"""Whatever happens to offsets: what the shard knows is what a replay of its log tells, and a model agrees."""

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from riverlog.coordinator.groups.coordinator import GroupCoordinator
from riverlog.coordinator.groups.kinds import Claim
from riverlog.coordinator.groups.offsets.requests import NewOffset, Verdicts
from riverlog.coordinator.groups.shard import GroupShard
from riverlog.coordinator.runtime.shard_runtime import ShardAnswer
from riverlog.model.config.group_config import GroupConfig
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerIdAndEpoch, TopicPartition
from riverlog.model.internal_topics import OFFSETS_TOPIC
from tests.coordinator.hosting import Cluster, Logs, image, read_now
from tests.virtual_time import LoopClock, elapse, run_virtually

GROUPS = st.sampled_from(["a", "b"])
TOPICS = st.sampled_from(["orders", "payments"])
PARTITIONS = st.integers(0, 1)
PRODUCERS = st.integers(1, 2)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), GROUPS, TOPICS, PARTITIONS, st.integers(0, 9)),
        st.tuples(st.just("pend"), PRODUCERS, GROUPS, TOPICS, PARTITIONS, st.integers(0, 9)),
        st.tuples(st.just("end"), PRODUCERS, st.booleans()),
        st.tuples(st.just("delete"), GROUPS, TOPICS, PARTITIONS),
        st.tuples(st.just("drop topic"), TOPICS),
        st.tuples(st.just("wait"), st.sampled_from([1, 600, 86_400])),
        st.tuples(st.just("restart")),
    ),
    max_size=30,
)
CONFIG = GroupConfig(offsets_retention_minutes=24 * 60)
DAY_S = 86_400
SWEEP_S = 600


class Model:
    """Committed offsets with the time of their commit, and those of open transactions, in plain dicts."""

    def __init__(self) -> None:
        self.committed: dict[tuple[str, str, int], tuple[int, float, int]] = {}
        self.pending: dict[int, dict[tuple[str, str, int], tuple[int, float, int]]] = {}
        self.count = 0

    def commit(self, at: tuple[str, str, int], offset: int, now_s: float) -> None:
        self.count += 1
        self.committed[at] = (offset, now_s, self.count)

    def pend(self, producer: int, at: tuple[str, str, int], offset: int, now_s: float) -> None:
        self.count += 1
        self.pending.setdefault(producer, {})[at] = (offset, now_s, self.count)

    def end(self, producer: int, commit: bool) -> None:
        for at, entry in self.pending.pop(producer, {}).items():
            if commit and (at not in self.committed or self.committed[at][2] < entry[2]):
                self.committed[at] = entry

    def remove(self, at: tuple[str, str, int]) -> None:
        self.committed.pop(at, None)
        for entries in self.pending.values():
            entries.pop(at, None)

    def drop(self, topic: str) -> None:
        pending = [at for entries in self.pending.values() for at in entries]
        for at in {*self.committed, *pending}:
            if at[1] == topic:
                self.remove(at)

    def is_pending(self, at: tuple[str, str, int]) -> bool:
        return any(at in entries for entries in self.pending.values())


class Run:
    def __init__(self) -> None:
        self.logs = Logs()
        self.model = Model()
        self.start()

    def start(self) -> None:
        self.cluster = Cluster(self.logs)
        self.groups = GroupCoordinator(
            CONFIG, self.cluster.replicas, lambda: self.cluster.image, clock=LoopClock(), read=read_now
        )
        self.cluster.follow(self.groups.apply)
        self.show()
        self.loaded_s = self.ended_s = asyncio.get_running_loop().time()

    def show(self, *gone: str) -> None:
        topics = {OFFSETS_TOPIC: 1, "orders": 2, "payments": 2}
        self.cluster.show(image({name: count for name, count in topics.items() if name not in gone}))

    async def step(self, step: tuple[Any, ...]) -> None:
        now_s = asyncio.get_running_loop().time()
        match step:
            case ("commit", group, topic, partition, offset):
                await self.commit(group, NewOffset(TopicPartition(topic, partition), offset), None)
                self.model.commit((group, topic, partition), offset, now_s)
            case ("pend", producer, group, topic, partition, offset):
                new = NewOffset(TopicPartition(topic, partition), offset)
                await self.commit(group, new, ProducerIdAndEpoch(producer, 0))
                self.model.pend(producer, (group, topic, partition), offset, now_s)
            case ("end", producer, commit):
                assert (
                    await self.groups.write_marker(0, ProducerIdAndEpoch(producer, 0), 0, commit=commit)
                    is None
                )
                self.model.end(producer, commit)
                self.ended_s = now_s
            case ("delete", group, topic, partition):
                wanted = [TopicPartition(topic, partition)]
                await self.groups.run(
                    group, lambda shard, token, _: shard.offsets.decide_delete(token, group, wanted)
                )
                if (group, topic, partition) in self.model.committed:
                    self.model.remove((group, topic, partition))
            case ("drop topic", topic):
                await self.loaded()
                self.show(topic)
                self.show()
                for at in {
                    *self.model.committed,
                    *(at for each in self.model.pending.values() for at in each),
                }:
                    if at[1] == topic:
                        self.model.remove(at)
            case ("wait", seconds):
                await self.loaded()
                await elapse(seconds)
            case ("restart",):
                await self.groups.close()
                self.start()
                await self.loaded()

    async def loaded(self) -> GroupShard:
        found = await self.groups.ask("a", lambda shard: shard)
        assert not isinstance(found, ErrorCode)
        return found

    async def commit(self, group: str, new: NewOffset, producer: ProducerIdAndEpoch | None) -> None:
        claim = Claim(is_transactional=producer is not None)
        verdicts: ShardAnswer[Verdicts] = self.groups.run(
            group,
            lambda shard, token, now_ms: shard.offsets.decide_commit(
                token, group, claim, [new], now_ms, producer=producer
            ),
        )
        assert await verdicts == (ErrorCode.NONE,)

    async def check(self) -> None:
        live = await self.loaded()
        fresh = Cluster(self.logs)
        replayed = GroupCoordinator(
            CONFIG, fresh.replicas, lambda: fresh.image, clock=LoopClock(), read=read_now
        )
        fresh.follow(replayed.apply)
        fresh.show(self.cluster.image)
        other = await replayed.ask("a", lambda shard: shard)
        assert not isinstance(other, ErrorCode)
        assert other.offsets.table == live.offsets.table
        assert len(other.offsets.table) == len(live.offsets.table)
        await replayed.close()
        self.check_model(live)

    def check_model(self, live: GroupShard) -> None:
        now_s = asyncio.get_running_loop().time()
        for group in ("a", "b"):
            for topic in ("orders", "payments"):
                for partition in (0, 1):
                    at = (group, topic, partition)
                    found = live.offsets.table.get(*at)
                    expected = self.model.committed.get(at)
                    if expected is not None and found is None:
                        # Only expiry explains it: a day old at the time of some sweep since.
                        assert now_s - expected[1] >= DAY_S
                        assert not self.model.is_pending(at)
                        self.model.committed.pop(at)
                        continue
                    assert (found and found.offset) == (expected and expected[0])
                    if expected is not None and not self.model.is_pending(at):
                        since_s = max(expected[1] + DAY_S, self.loaded_s, self.ended_s)
                        assert now_s <= since_s + SWEEP_S
                    assert live.offsets.table.is_pending(*at) == self.model.is_pending(at)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_live_offsets_are_a_replay_of_the_log_and_agree_with_a_model(steps: list[tuple[Any, ...]]) -> None:
    async def run() -> None:
        playing = Run()
        for step in steps:
            await playing.step(step)
            await playing.check()
        await playing.groups.close()

    run_virtually(run)
