"""Topics that are created because a client asked for them, with the defaults or as internal topics.

The internal topics get Kafka's shapes, so that a group or a transaction finds what it expects. On a node that
is alone they have one replica: it serves groups without being told to. In a cluster the setting counts, and a
topic that would need more brokers than there are is not made until they are there: made with fewer replicas,
it would keep that number. One that was made with fewer before goes on as it is; `short_of_replicas` names it.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from riverlog.controller.decisions.topics import NewTopic
from riverlog.metadata.image import ClusterImage
from riverlog.model.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC

SHARE_STATE_TOPIC: Final = "__share_group_state"


class InternalShape(NamedTuple):
    partitions: int = 50
    replication_factor: int = 3
    segment_bytes: int = 100 * 1024**2
    min_insync_replicas: int | None = None


_CONFIGS: Final[Mapping[str, Mapping[str, str | None]]] = {
    OFFSETS_TOPIC: {"cleanup.policy": "compact", "compression.type": "producer"},
    TRANSACTIONS_TOPIC: {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "unclean.leader.election.enable": "false",
    },
    SHARE_STATE_TOPIC: {
        "cleanup.policy": "delete",
        "compression.type": "uncompressed",
        "retention.ms": "-1",
    },
}


class AutomaticTopics:
    def __init__(self, shapes: Mapping[str, InternalShape] | None = None, *, is_alone: bool = True) -> None:
        self._shapes = shapes or {}
        self._is_alone = is_alone

    def new_topic(self, name: str) -> NewTopic:
        configs = _CONFIGS.get(name)
        if configs is None:
            return NewTopic(name)
        shape = self._shapes.get(name, InternalShape())
        sizes = {"segment.bytes": str(shape.segment_bytes)}
        if shape.min_insync_replicas is not None:
            sizes["min.insync.replicas"] = str(shape.min_insync_replicas)
        return NewTopic(
            name,
            partitions=shape.partitions,
            replication_factor=1 if self._is_alone else shape.replication_factor,
            configs={**configs, **sizes},
        )

    def short_of_replicas(self, image: ClusterImage) -> list[str]:
        """A sentence for each internal topic that has fewer replicas than it would be made with."""
        if self._is_alone:
            return []
        found = {
            name: min(len(each.replicas) for each in topic.partitions)
            for name in self._shapes
            if (topic := image.topics.get(name)) is not None and topic.partitions
        }
        return [
            f"{name} has partitions with {replicas} of {wanted} replicas, as it was made. What they hold "
            "cannot be used while their brokers are away, and replicas cannot be added yet. To have it made "
            f"anew, without what it holds: stop its clients, `riverlog topic delete {name}`, start them"
            for name, replicas in found.items()
            if replicas < (wanted := self._shapes[name].replication_factor)
        ]
