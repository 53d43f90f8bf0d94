"""From nodes of the store to the image: which part a changed path touches, and the image with that part new.

Pure. `parts_of` says what must be read again after a change; `ImageBuilder` puts what was read into a new
image. A topic is read as a whole, except that a change of one partition's state reads that state alone.
"""

from collections.abc import Mapping
from typing import Final

from riverlog.metadata import layout, payloads
from riverlog.metadata.image import (
    BrokerImage,
    ClusterImage,
    ConfigResource,
    PartitionImage,
    ResourceType,
    TopicImage,
)
from riverlog.model.ids import NodeId
from riverlog.model.metadata_store import Versioned

Tree = Mapping[str, Versioned]

ROOTS: Final = (
    layout.BROKER_IDS,
    layout.TOPICS,
    layout.TOPIC_CONFIGS,
    layout.BROKER_CONFIGS,
    layout.CONTROLLER,
    layout.CLUSTER_ID,
)
"""All that the image is made from."""


def parts_of(path: str) -> list[str]:
    """The paths to read again when something at or below `path` has changed; none if the image lacks it."""
    parts: list[str] = []
    for root in ROOTS:
        if layout.is_at_or_below(root, path):
            parts.append(root)
        elif layout.is_at_or_below(path, root):
            names = path[len(root) + 1 :].split("/")
            one_state = root == layout.TOPICS and len(names) == 4
            parts.append(path if one_state else f"{root}/{names[0]}")
    return parts


class ImageBuilder:
    """Starts from an image and takes parts that were read again. An empty tree says that the part is gone."""

    def __init__(self, base: ClusterImage) -> None:
        self._base = base
        self._cluster_id = base.cluster_id
        self._controller_id = base.controller_id
        self._brokers = dict(base.brokers)
        self._topics = dict(base.topics)
        self._topic_names = dict(base.topic_names)
        self._configs = dict(base.configs)
        self._shared: dict[tuple[tuple[NodeId, ...], bytes, int], PartitionImage] = {}

    def build(self) -> ClusterImage:
        """The image with all parts applied: the very one it started from when nothing differs."""
        image = ClusterImage(
            self._cluster_id,
            self._base.version,
            self._controller_id,
            self._brokers,
            self._topics,
            self._topic_names,
            self._configs,
        )
        if image == self._base:
            return self._base
        object.__setattr__(image, "version", self._base.version + 1)
        return image

    def apply(self, part: str, tree: Tree) -> None:
        for root in ROOTS:
            if part == root:
                self._apply_root(root, tree)
            elif part.startswith(root + "/"):
                self._apply_entry(root, part[len(root) + 1 :], tree)

    def _apply_root(self, root: str, tree: Tree) -> None:
        node = tree.get(root)
        match root:
            case layout.CONTROLLER:
                self._controller_id = payloads.decode_controller(root, node.data) if node else None
            case layout.CLUSTER_ID:
                self._cluster_id = payloads.decode_cluster_id(root, node.data) if node else ""
            case _:
                names = {path[len(root) + 1 :] for path in tree if path != root}
                entries = {name for name in names if "/" not in name}
                for name in self._entries_of(root) - entries:
                    self._apply_entry(root, name, {})
                for name in entries:
                    self._apply_entry(root, name, tree)

    def _entries_of(self, root: str) -> set[str]:
        match root:
            case layout.BROKER_IDS:
                return {str(node_id) for node_id in self._brokers}
            case layout.TOPICS:
                return set(self._topics)
            case layout.TOPIC_CONFIGS:
                return {name for kind, name in self._configs if kind is ResourceType.TOPIC}
            case _:
                names = (name for kind, name in self._configs if kind is ResourceType.BROKER)
                return {name or layout.DEFAULT_ENTITY for name in names}

    def _apply_entry(self, root: str, name: str, tree: Tree) -> None:
        path = f"{root}/{name}"
        node = tree.get(path)
        match root:
            case layout.BROKER_IDS:
                self._apply_broker(path, NodeId(int(name)), node)
            case layout.TOPICS if "/" in name:
                self._apply_partition(path, name, node)
            case layout.TOPICS:
                self._apply_topic(path, name, node, tree)
            case layout.TOPIC_CONFIGS:
                self._apply_config(path, ConfigResource(ResourceType.TOPIC, name), node)
            case layout.BROKER_CONFIGS:
                entity = "" if name == layout.DEFAULT_ENTITY else name
                self._apply_config(path, ConfigResource(ResourceType.BROKER, entity), node)

    def _apply_broker(self, path: str, node_id: NodeId, node: Versioned | None) -> None:
        if node is None:
            self._brokers.pop(node_id, None)
            return
        registered = payloads.decode_broker(path, node.data)
        self._brokers[node_id] = BrokerImage(node_id, registered.endpoints, registered.rack)

    def _apply_config(self, path: str, resource: ConfigResource, node: Versioned | None) -> None:
        values = payloads.decode_config(path, node.data) if node else {}
        if values:
            self._configs[resource] = values
        else:
            self._configs.pop(resource, None)

    def _apply_topic(self, path: str, name: str, node: Versioned | None, tree: Tree) -> None:
        old = self._topics.get(name)
        if old is not None:
            self._topic_names.pop(old.topic_id, None)
        if node is None:
            self._topics.pop(name, None)
            return
        read = payloads.decode_topic(path, node.data)
        prefix = layout.partitions(name)
        partitions = tuple(
            [
                self._partition(replicas, f"{prefix}/{index}/state", tree.get(f"{prefix}/{index}/state"))
                for index, replicas in enumerate(read.replicas)
            ]
        )
        self._topics[name] = TopicImage(name, read.topic_id, partitions)
        self._topic_names[read.topic_id] = name

    def _apply_partition(self, path: str, name: str, node: Versioned | None) -> None:
        topic_name, _, index_text, _ = name.split("/")
        topic = self._topics.get(topic_name)
        index = int(index_text)
        if topic is None or index >= len(topic.partitions):
            return  # The topic itself is changing too, and is read as a whole.
        partitions = list(topic.partitions)
        partitions[index] = self._partition(partitions[index].replicas, path, node)
        self._topics[topic_name] = TopicImage(topic_name, topic.topic_id, tuple(partitions))

    def _partition(self, replicas: tuple[NodeId, ...], path: str, node: Versioned | None) -> PartitionImage:
        if node is None:
            return PartitionImage(replicas, (), None, -1, -1)
        key = (replicas, node.data, node.version)
        found = self._shared.get(key)
        if found is None:
            state = payloads.decode_partition(path, node.data)
            found = PartitionImage(replicas, state.isr, state.leader, state.leader_epoch, node.version)
            self._shared[key] = found
        return found
