"""A start neither deletes nor sets aside the log of a topic that exists (I21).

Which topics exist is what the store says, not what the node takes it to say.
"""

from collections.abc import Iterator

from riverlog.metadata import layout, payloads
from riverlog.model.ids import TopicId
from riverlog.storage.files.names import PARTITION_METADATA, parse_partition_directory
from riverlog.storage.files.partition_metadata import decode_uuid
from riverlog.testing.simulated_disk import SimulatedDisk
from riverlog.testing.simulation.nodes import ObservedNode, SimulatedNode
from riverlog.testing.simulation.violations import Violation


class KeptLogsCheck:
    def __init__(self) -> None:
        self._before: dict[str, TopicId] = {}

    def note_start(self, node: SimulatedNode) -> None:
        self._before = identified_logs(node.disk, node.log_directories)

    def compare(self, node: SimulatedNode, parts: ObservedNode) -> None:
        living = set(_topic_ids(node))
        after = identified_logs(node.disk, node.log_directories)
        for path, topic_id in self._before.items():
            if topic_id in living and path not in after:
                raise Violation("I21", f"the start took {path} away, a log of the topic {topic_id}")


def _topic_ids(node: SimulatedNode) -> Iterator[TopicId]:
    for name in node.ensemble.children(layout.TOPICS):
        written = node.ensemble.get(layout.topic(name))
        assert written is not None
        yield payloads.decode_topic(name, written.data).topic_id


def identified_logs(disk: SimulatedDisk, roots: list[str]) -> dict[str, TopicId]:
    """Directories of partitions that say which topic they are of."""
    found = {}
    for root in roots:
        for name in sorted(disk.list(root)) if disk.exists(root) else []:
            path = f"{root}/{name}/{PARTITION_METADATA}"
            if parse_partition_directory(name) is not None and disk.exists(path):
                topic_id = _topic_id(bytes(disk.peek(path)))
                if topic_id is not None:
                    found[f"{root}/{name}"] = topic_id
    return found


def _topic_id(content: bytes) -> TopicId | None:
    """None for a torn file: it is too short, or as long as it was, with zeros anywhere in it."""
    version, _, written = content.partition(b"\ntopic_id: ")
    if version != b"version: 0":
        return None
    try:
        return TopicId(decode_uuid(written.decode()))
    except ValueError:
        return None
