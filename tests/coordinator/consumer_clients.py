"""Clients of the consumer protocol against a coordinator on a simulated disk and virtual time.

A client does what KIP-848 wants of it: it gives up at once what it is told to, says so with its next
heartbeat, and begins anew when it is fenced.
"""

from typing import Any
from uuid import UUID

from riverlog.coordinator.groups.consumer.group import ConsumerGroup
from riverlog.coordinator.groups.consumer.requests import (
    JOIN,
    LEAVE,
    LEAVE_FOR_A_WHILE,
    Beaten,
    Heartbeat,
    HeartbeatRefusal,
    HeartbeatReply,
)
from riverlog.coordinator.groups.coordinator import GroupCoordinator
from riverlog.coordinator.groups.shard import GroupShard
from riverlog.coordinator.runtime.effects import Effects, Token
from riverlog.metadata.image import ClusterImage
from riverlog.model.config.group_config import GroupConfig
from riverlog.model.errors import ErrorCode
from riverlog.model.internal_topics import OFFSETS_TOPIC
from tests.coordinator.hosting import Cluster, Logs, image, read_now
from tests.virtual_time import LoopClock

GROUP = "group"
CONFIG = GroupConfig(consumer_assignment_interval_ms=0)


class Coordination:
    """A coordinator that can be restarted, and the topics that it sees."""

    def __init__(self, config: GroupConfig = CONFIG, **topics: int) -> None:
        self.config = config
        self.logs = Logs()
        self.topics = topics
        self._ids = 1
        self.start()

    def start(self) -> None:
        self.cluster = Cluster(self.logs)
        self.groups = self._coordinator(self.cluster)
        self.show()

    def show(self, **changed: int) -> None:
        """Topics with other sizes; with none they are gone."""
        self.topics.update(changed)
        self.cluster.show(self._image())

    def remake(self, topic: str) -> None:
        """Delete a topic and create it again: it has another id."""
        size, self.topics[topic] = self.topics[topic], 0
        self.show()
        self._ids += 1
        self.show(**{topic: size})

    async def restart(self) -> None:
        await self.groups.close()
        self.start()

    async def beat(self, beat: Heartbeat) -> HeartbeatReply:
        def decide(shard: GroupShard, token: Token[HeartbeatReply], now_ms: int) -> Effects:
            return shard.consumer.decide_heartbeat(token, beat, now_ms)

        reply = await self.groups.run(GROUP, decide)
        assert isinstance(reply, Beaten | HeartbeatRefusal)
        return reply

    async def group(self) -> ConsumerGroup | None:
        return (await self._shard(self.groups)).consumer.groups.get(GROUP)

    async def replayed(self) -> ConsumerGroup | None:
        """The group as a coordinator finds it that only has the log."""
        fresh = Cluster(self.logs)
        groups = self._coordinator(fresh)
        fresh.show(self.cluster.image)
        found = (await self._shard(groups)).consumer.groups.get(GROUP)
        await groups.close()
        return found

    def _coordinator(self, cluster: Cluster) -> GroupCoordinator:
        groups = GroupCoordinator(
            self.config, cluster.replicas, lambda: cluster.image, clock=LoopClock(), read=read_now
        )
        cluster.follow(groups.apply)
        return groups

    def _image(self) -> ClusterImage:
        made = image({name: size for name, size in self.topics.items() if size}, ids=self._ids)
        offsets = image({OFFSETS_TOPIC: 1})
        return ClusterImage(
            brokers=made.brokers,
            topics={**made.topics, **offsets.topics},
            topic_names={**made.topic_names, **offsets.topic_names},
        )

    async def _shard(self, groups: GroupCoordinator) -> GroupShard:
        found = await groups.ask(GROUP, lambda shard: shard)
        assert not isinstance(found, ErrorCode)
        return found


class Client:
    def __init__(self, coordination: Coordination, member_id: str, *topics: str, **fields: Any) -> None:
        self.member_id = member_id
        self.topics = topics
        self.fields = fields
        self.epoch = JOIN
        self.owned: frozenset[tuple[UUID, int]] = frozenset()
        self._told: frozenset[tuple[UUID, int]] | None = None
        self._coordination = coordination
        self._processes = 0

    @property
    def is_member(self) -> bool:
        return self.epoch > JOIN

    async def beat(self, *, full: bool = False, lost_reply: bool = False, **more: Any) -> HeartbeatReply:
        """Join, or say what is new since the last heartbeat; and do what the reply says."""
        fields: dict[str, Any] = {}
        if self.epoch == JOIN or full:
            fields = {"rebalance_timeout_ms": 30_000, "topics": self.topics, **self.fields}
        if self.epoch == JOIN or full or self.owned != self._told:
            fields["owned"] = by_topic(self.owned)
        beat = Heartbeat(GROUP, self.member_id, self.epoch, **{**fields, **more})
        reply = await self._coordination.beat(beat)
        if lost_reply:
            self._told = None
            return reply
        self._take(reply)
        return reply

    async def leave(self) -> None:
        await self._coordination.beat(Heartbeat(GROUP, self.member_id, LEAVE))
        self.forget()

    async def pause(self) -> None:
        """A static member goes for a while: its partitions are kept for whoever comes under its name."""
        instance = self.fields["instance_id"]
        await self._coordination.beat(Heartbeat(GROUP, self.member_id, LEAVE_FOR_A_WHILE, instance))
        self.begin_anew()

    def begin_anew(self) -> None:
        """Another process, with an id of its own."""
        self._processes += 1
        self.member_id = f"{self.member_id.partition('.')[0]}.{self._processes}"
        self.forget()

    def forget(self) -> None:
        self.epoch, self.owned, self._told = JOIN, frozenset(), None

    def _take(self, reply: HeartbeatReply) -> None:
        if isinstance(reply, HeartbeatRefusal):
            expected = {ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID}
            if "instance_id" in self.fields:
                expected |= {ErrorCode.UNRELEASED_INSTANCE_ID, ErrorCode.FENCED_INSTANCE_ID}
            assert reply.error in expected, reply
            self.forget()
            return
        self.epoch, self._told = reply.epoch, self.owned
        if reply.assigned is not None:
            self.owned = frozenset(
                (topic, index) for topic, indexes in reply.assigned.items() for index in indexes
            )


def by_topic(partitions: frozenset[tuple[UUID, int]]) -> dict[UUID, frozenset[int]]:
    found: dict[UUID, set[int]] = {}
    for topic, index in partitions:
        found.setdefault(topic, set()).add(index)
    return {topic: frozenset(indexes) for topic, indexes in found.items()}
