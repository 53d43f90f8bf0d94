"""What a process knows of the metadata never goes back while it runs (I8).

The state of a partition is the one it was or a later one: whoever reads an older store shows nothing of it.
"""

from riverlog.metadata.image import ClusterImage
from riverlog.testing.simulation.nodes import ObservedNode, SimulatedNode
from riverlog.testing.simulation.violations import Violation


class ImageCheck:
    """Of one node."""

    def __init__(self) -> None:
        self._parts: ObservedNode | None = None
        self._image = ClusterImage()

    def look(self, node: SimulatedNode, parts: ObservedNode) -> None:
        if parts is not self._parts:
            self._parts, self._image = parts, ClusterImage()
        before, after = self._image, parts.image
        if before is after:
            return
        self._image = after
        if before.topics is not after.topics:
            _compare(node, before, after)


def _compare(node: SimulatedNode, before: ClusterImage, after: ClusterImage) -> None:
    for name, topic in after.topics.items():
        was = before.topics.get(name)
        if was is None or was is topic or was.topic_id != topic.topic_id:
            continue
        for index, (old, new) in enumerate(zip(was.partitions, topic.partitions, strict=False)):
            if new.partition_epoch < old.partition_epoch:
                what = f"the image of {node.name} goes back, {old} to {new}"
                raise Violation("I8", f"{name}-{index}: {what}")
