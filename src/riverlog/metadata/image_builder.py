"""From nodes of the store to the image: which part a changed path touches, and the image with that part new.

Pure. `parts_of` says what must be read again after a change; `ImageBuilder` puts what was read into a new
image and says what differs in it. A topic is read as a whole, except that a change of one partition's state
reads that state alone; the states of one topic are collected, so that its partitions are copied once however
many of them have changed.
"""

from collections.abc import Mapping
from typing import Final, Generic, TypeVar

from riverlog.metadata import layout, payloads
from riverlog.metadata.config_nodes import CONFIG_ROOTS, entry_of, resource_at
from riverlog.metadata.delta import ImageDelta, delta_of
from riverlog.metadata.image import BrokerImage, ClusterImage, ConfigResource, PartitionImage, TopicImage
from riverlog.model.ids import BrokerEpoch, LeaderEpoch, NodeId
from riverlog.model.metadata_store import Versioned

K = TypeVar("K")
V = TypeVar("V")
Tree = Mapping[str, Versioned]

ROOTS: Final = (
    layout.BROKER_IDS,
    layout.REGISTRATIONS,
    layout.TOPICS,
    *CONFIG_ROOTS,
    layout.CONTROLLER,
    layout.CLUSTER_ID,
    layout.FEATURES,
)
"""All that the image is made from."""


_FIRST_CHANGED_EPOCH: Final = 2
"""Of features, of which those of a new cluster have epoch 1."""


def parts_of(path: str) -> list[str]:
    """The paths to read again when something at or below `path` has changed; none if the image lacks it."""
    parts: list[str] = []
    for root in ROOTS:
        if layout.is_at_or_below(root, path):
            parts.append(root)
        elif layout.is_at_or_below(path, root):
            parts.append(_part_below(root, path))
    return parts


def topic_in(part: str) -> str | None:
    """Of which topic a part is, as a whole or a state of it; None for other parts."""
    if not part.startswith(layout.TOPICS + "/"):
        return None
    return part[len(layout.TOPICS) + 1 :].split("/")[0]


def made_at(topic: str, tree: Tree) -> int | None:
    """By the node above its partitions, which is made with the topic, never changes and is small."""
    node = tree.get(layout.partitions(topic))
    return None if node is None else node.created


def _part_below(root: str, path: str) -> str:
    """The entry of the root; of a topic, the state alone where only a partition has changed."""
    names = path[len(root) + 1 :].split("/")
    if root == layout.TOPICS and len(names) in (3, 4):
        return layout.partition_state(names[0], int(names[2]))
    return f"{root}/{names[0]}"


class _CopyOnWrite(Generic[K, V]):
    """A mapping under change, copied when the first difference comes: what stays the same stays itself."""

    def __init__(self, base: Mapping[K, V]) -> None:
        self._base = base
        self._copy: dict[K, V] | None = None
        self.touched: set[K] = set()
        """Keys under which something may differ from the base."""

    @property
    def now(self) -> Mapping[K, V]:
        return self._base if self._copy is None else self._copy

    def put(self, key: K, value: V) -> None:
        if self.now.get(key) != value:
            self._writable(key)[key] = value

    def drop(self, key: K) -> None:
        if key in self.now:
            del self._writable(key)[key]

    def _writable(self, key: K) -> dict[K, V]:
        self.touched.add(key)
        if self._copy is None:
            self._copy = dict(self._base)
        return self._copy


class ImageBuilder:
    """Starts from an image and takes parts that were read again. An empty tree says that the part is gone."""

    def __init__(self, base: ClusterImage) -> None:
        self._base = base
        self._cluster_id = base.cluster_id
        self._controller_id = base.controller_id
        self._features, self._features_epoch = base.features, base.features_epoch
        self._brokers = _CopyOnWrite(base.brokers)
        self._registered = _CopyOnWrite(base.registered)
        self._topics = _CopyOnWrite(base.topics)
        self._topic_names = _CopyOnWrite(base.topic_names)
        self._configs = _CopyOnWrite(base.configs)
        self._states: dict[str, dict[int, Versioned | None]] = {}
        """Partition states that were read alone, by topic and index, until the image is built."""
        self._shared: dict[tuple[tuple[NodeId, ...], bytes, int], PartitionImage] = {}

    def build(self) -> ImageDelta | None:
        """The image with all parts applied, as what differs in it; None when nothing does."""
        for topic, states in self._states.items():
            self._put_states(topic, states)
        self._states.clear()
        base = self._base
        if (
            self._cluster_id == base.cluster_id
            and self._controller_id == base.controller_id
            and self._features_epoch == base.features_epoch
            and self._brokers.now is base.brokers
            and self._registered.now is base.registered
            and self._topics.now is base.topics
            and self._configs.now is base.configs
        ):
            return None
        new = ClusterImage(
            cluster_id=self._cluster_id,
            version=base.version + 1,
            controller_id=self._controller_id,
            brokers=self._brokers.now,
            registered=self._registered.now,
            topics=self._topics.now,
            topic_names=self._topic_names.now,
            configs=self._configs.now,
            features=self._features,
            features_epoch=self._features_epoch,
        )
        return delta_of(
            base,
            new,
            topics=self._topics.touched,
            brokers=self._brokers.touched,
            configs=self._configs.touched,
        )

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
            case layout.FEATURES:
                self._apply_features(root, node)
            case layout.CLUSTER_ID:
                self._cluster_id = payloads.decode_cluster_id(root, node.data) if node else ""
            case _:
                names = {path[len(root) + 1 :] for path in tree if path != root}
                entries = {name for name in names if "/" not in name}
                for name in sorted(self._entries_of(root) - entries):
                    self._apply_entry(root, name, {})
                for name in sorted(entries):
                    self._apply_entry(root, name, tree)

    def _apply_features(self, path: str, node: Versioned | None) -> None:
        if node is not None:
            self._features = payloads.decode_features(path, node.data)
            self._features_epoch = _FIRST_CHANGED_EPOCH + node.version

    def _entries_of(self, root: str) -> set[str]:
        match root:
            case layout.BROKER_IDS:
                return {str(node_id) for node_id in self._brokers.now}
            case layout.REGISTRATIONS:
                return {str(node_id) for node_id in self._registered.now}
            case layout.TOPICS:
                return set(self._topics.now)
            case _:
                kind = CONFIG_ROOTS[root]
                return {entry_of(resource) for resource in self._configs.now if resource.type is kind}

    def _apply_entry(self, root: str, name: str, tree: Tree) -> None:
        path = f"{root}/{name}"
        node = tree.get(path)
        match root:
            case layout.BROKER_IDS:
                self._apply_broker(path, NodeId(int(name)), node)
            case layout.REGISTRATIONS:
                self._apply_registration(path, NodeId(int(name)), node)
            case layout.TOPICS if "/" in name:
                topic, _, index, _ = name.split("/")
                self._states.setdefault(topic, {})[int(index)] = node
            case layout.TOPICS:
                self._apply_topic(path, name, node, tree)
            case _:
                self._apply_config(path, resource_at(root, name), node)

    def _apply_broker(self, path: str, node_id: NodeId, node: Versioned | None) -> None:
        if node is None:
            self._brokers.drop(node_id)
            return
        registered = payloads.decode_broker(path, node.data)
        broker = BrokerImage(
            node_id,
            registered.endpoints,
            registered.rack,
            BrokerEpoch(node.created) if registered.epoch is None else registered.epoch,
            registered.host,
            registered.is_shutting_down,
            frozenset((topic, index) for topic, indexes in registered.offline.items() for index in indexes),
            node.version,
            registered.log_ends,
        )
        self._brokers.put(node_id, broker)

    def _apply_registration(self, path: str, node_id: NodeId, node: Versioned | None) -> None:
        if node is None:
            self._registered.drop(node_id)
            return
        read = payloads.decode_registration(path, node.data)
        broker = BrokerImage(node_id, read.endpoints, read.rack, BrokerEpoch(node.version), read.host)
        self._registered.put(node_id, broker)

    def _apply_config(self, path: str, resource: ConfigResource, node: Versioned | None) -> None:
        values = payloads.decode_config(path, node.data) if node else {}
        if values:
            self._configs.put(resource, values)
        else:
            self._configs.drop(resource)

    def _apply_topic(self, path: str, name: str, node: Versioned | None, tree: Tree) -> None:
        self._states.pop(name, None)  # What is read as a whole is newer than the states before it.
        old = self._topics.now.get(name)
        if node is None:
            if old is not None:
                self._topics.drop(name)
                self._topic_names.drop(old.topic_id)
            return
        read = payloads.decode_topic(path, node.data)
        prefix = layout.partitions(name)
        paths = [f"{prefix}/{index}/state" for index in range(len(read.replicas))]
        partitions = tuple(
            [
                self._partition(replicas, path, tree.get(path))
                for path, replicas in zip(paths, read.replicas, strict=True)
            ]
        )
        if old is not None and old.topic_id != read.topic_id:
            self._topic_names.drop(old.topic_id)
        self._topics.put(name, TopicImage(name, read.topic_id, partitions, made_at(name, tree)))
        self._topic_names.put(read.topic_id, name)

    def _put_states(self, name: str, states: Mapping[int, Versioned | None]) -> None:
        topic = self._topics.now.get(name)
        if topic is None:
            return  # The topic itself is changing too, and is read as a whole.
        partitions = list(topic.partitions)
        for index, node in states.items():
            if index < len(partitions):
                path = layout.partition_state(name, index)
                partitions[index] = self._partition(partitions[index].replicas, path, node)
        self._topics.put(name, TopicImage(name, topic.topic_id, tuple(partitions), topic.made_at))

    def _partition(self, replicas: tuple[NodeId, ...], path: str, node: Versioned | None) -> PartitionImage:
        if node is None:
            return PartitionImage(replicas, (), None, LeaderEpoch(-1), -1)
        key = (replicas, node.data, node.version)
        found = self._shared.get(key)
        if found is None:
            state = payloads.decode_partition(path, node.data)
            found = PartitionImage(
                replicas,
                state.isr,
                state.leader,
                state.leader_epoch,
                node.version,
                state.leader_broker_epoch,
                state.elr,
                state.last_known_elr,
                state.unclean_epoch,
                state.controller_epoch,
                state.log_epoch,
            )
            self._shared[key] = found
        return found
