"""Kill the node after any change to its disk: a transaction is all or nothing (I14).

The whole stack but the sockets: coordinators, replicas and logs on a simulated disk. After the kill the
node starts again on what is there, ends what it finds half ended, and a new producer takes the
transactional id over.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import pytest

from riverlog.coordinator.groups.coordinator import GroupCoordinator
from riverlog.coordinator.groups.kinds import Claim
from riverlog.coordinator.groups.offsets.requests import NewOffset, Verdicts
from riverlog.coordinator.runtime.shard_runtime import ShardAnswer
from riverlog.coordinator.transactions.coordinator import TransactionCoordinator
from riverlog.coordinator.transactions.local_markers import LocalMarkerWriter
from riverlog.coordinator.transactions.shard import Initialised
from riverlog.coordinator.transactions.transaction import VERSION_1, VERSION_2, Transaction
from riverlog.metadata.producer_ids import ProducerIds
from riverlog.model.config.group_config import GroupConfig
from riverlog.model.config.transaction_config import TransactionConfig
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerIdAndEpoch, TopicPartition
from riverlog.model.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from riverlog.records import batch as batches
from riverlog.records.builder import build_batch
from riverlog.records.record import records_of
from riverlog.replication.append_outcomes import AppendedRecords
from riverlog.replication.partition import Partition
from riverlog.storage.log.log import Log
from riverlog.storage.log.segment_list import LogRead
from riverlog.storage.producers.state import end_marker
from riverlog.testing.simulated_disk import PowerOff, SimulatedDisk
from riverlog.testing.simulated_store import SimulatedEnsemble, SimulatedStore
from tests.coordinator.hosting import NODE, Cluster, Logs, image, read_now
from tests.virtual_time import LoopClock, run_virtually

NAME = "payments"
GROUP = "readers"
PARTITIONS = [TopicPartition("orders", 0), TopicPartition("orders", 1)]
SOURCE = TopicPartition("source", 0)
TOPICS = {"orders": 2, "source": 1, OFFSETS_TOPIC: 2, TRANSACTIONS_TOPIC: 2}


@dataclass
class Attempt:
    """One transaction: what it wrote, and how it was acknowledged to have ended."""

    tag: int
    commit: bool
    acknowledged: bool = False


@dataclass
class World:
    """What a kill does not take: the disk, the metadata store, and the client's knowledge."""

    disk: SimulatedDisk = field(default_factory=SimulatedDisk)
    store: SimulatedStore = field(default_factory=lambda: SimulatedEnsemble().connect())
    attempts: list[Attempt] = field(default_factory=list)


class Stack:
    """One life of the node."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.cluster = Cluster(Logs(world.disk))
        clock = LoopClock()
        self.groups = GroupCoordinator(
            GroupConfig(), self.cluster.replicas, lambda: self.cluster.image, clock=clock, read=read_now
        )
        self.transactions = TransactionCoordinator(
            TransactionConfig(),
            self.cluster.replicas,
            ProducerIds(world.store, NODE),
            LocalMarkerWriter(self.cluster.replicas, self.groups, clock),
            clock=clock,
            read=read_now,
        )
        self.cluster.follow(self.groups.apply)
        self.cluster.follow(self.transactions.apply)
        self.cluster.show(image(TOPICS))
        self._sequences: dict[tuple[TopicPartition, ProducerIdAndEpoch], int] = {}

    async def start(self) -> None:
        await self.groups.load_all()
        await self.transactions.load_all()

    async def close(self) -> None:
        await self.transactions.close()
        await self.groups.close()

    async def take_over(self) -> ProducerIdAndEpoch:
        for _ in range(3):
            answer = await self.transactions.init_producer_id(NAME, 60_000, None)
            if isinstance(answer, Initialised):
                return answer.producer
            assert answer is ErrorCode.CONCURRENT_TRANSACTIONS
        raise AssertionError("the transaction before is not ended")

    async def transact(self, me: ProducerIdAndEpoch, commit: bool, version: int) -> ProducerIdAndEpoch:
        attempt = Attempt(len(self.world.attempts) + 1, commit)
        self.world.attempts.append(attempt)
        offsets = TopicPartition(OFFSETS_TOPIC, self.groups._runtime.partition_for(GROUP))
        for place in (*PARTITIONS, offsets):
            assert await self.transactions.add_partitions(NAME, me, [place], client_version=version) is None
        for place in PARTITIONS:
            self._produce(place, me, attempt.tag)
        new = NewOffset(SOURCE, attempt.tag)
        verdicts: ShardAnswer[Verdicts] = self.groups.run(
            GROUP,
            lambda shard, token, now_ms: shard.offsets.decide_commit(
                token, GROUP, Claim(is_transactional=True), [new], now_ms, producer=me
            ),
        )
        assert await verdicts == (ErrorCode.NONE,)
        after = await self.transactions.end(NAME, me, commit=commit, client_version=version)
        assert isinstance(after, ProducerIdAndEpoch)
        attempt.acknowledged = True
        return after

    def _produce(self, place: TopicPartition, me: ProducerIdAndEpoch, tag: int) -> None:
        sequence = self._sequences.get((place, me), 0)
        self._sequences[place, me] = sequence + 1
        batch = build_batch(
            [(1, None, str(tag).encode(), ())],
            producer_id=me.producer_id,
            producer_epoch=me.producer_epoch,
            base_sequence=sequence,
            transactional=True,
        )
        written = self.partition(place).append(memoryview(bytearray(batch)), 1, for_all_replicas=True)
        assert isinstance(written, AppendedRecords)

    def partition(self, place: TopicPartition) -> Partition:
        found = self.cluster.replicas.find(*place)
        assert isinstance(found, Partition)
        return found

    async def committed_offset(self) -> int | None:
        wanted = [(SOURCE.topic, [SOURCE.partition])]
        found = await self.groups.ask(GROUP, lambda shard: shard.offsets.fetch(GROUP, wanted))
        assert not isinstance(found, ErrorCode)
        return found[0][1][0].offset

    async def known(self) -> list[Transaction]:
        found: list[Transaction] = []
        for answer in self.transactions.list_each():
            listed = await answer
            assert not isinstance(listed, ErrorCode)
            found += listed
        return found


def outcomes(log: Log) -> tuple[dict[int, bool], int]:
    """How each transaction has ended in a partition, by its tag, and how many markers there are."""
    ended: dict[int, bool] = {}
    pending: dict[int, list[int]] = {}
    markers = 0
    for data in _pieces(log):
        for position, header in batches.walk(data):
            marker = end_marker(header, data, position)
            if marker is not None:
                markers += 1
                ended.update(dict.fromkeys(pending.pop(header.producer_id, []), not marker.is_abort))
            else:
                tags = [int(record.value or b"") for record in records_of(data, position)]
                pending.setdefault(header.producer_id, []).extend(tags)
    assert not pending, "a transaction is still open"
    return ended, markers


def _pieces(log: Log) -> Iterator[bytes]:
    offset = 0
    while offset < log.log_end_offset:
        read = log.read(offset, max_bytes=1 << 20, end_offset=log.log_end_offset)
        assert isinstance(read, LogRead)
        assert read.records is not None
        data = read.records.file.pread(read.records.length, read.records.position)
        yield data
        offset = max(header.next_offset for _, header in batches.walk(data))


async def live(world: World, version: int) -> None:
    stack = Stack(world)
    await stack.start()
    me = await stack.take_over()
    for commit in (True, False, True):
        me = await stack.transact(me, commit, version)
    await stack.close()


async def look(world: World, version: int) -> None:
    """Start on what the kill has left, and compare."""
    stack = Stack(world)
    await stack.start()
    assert not any(each.state.is_prepared for each in await stack.known()), "ended as soon as it is loaded"
    me = await stack.take_over()
    seen = [outcomes(stack.partition(place).log) for place in PARTITIONS]
    offset = await stack.committed_offset()
    for attempt in world.attempts:
        found = {ended.get(attempt.tag) for ended, _ in seen}
        if attempt.acknowledged:
            assert found == {attempt.commit}, attempt
        else:
            assert found <= {True} or found <= {False, None}, attempt
            assert attempt.commit or True not in found
    committed = [each.tag for each in world.attempts if seen[0][0].get(each.tag)]
    assert offset == (max(committed) if committed else None), "offsets go with the records"
    assert all(markers <= len(world.attempts) for _, markers in seen), "one marker for each transaction"
    await stack.transact(me, True, version)
    assert await stack.committed_offset() == world.attempts[-1].tag
    await stack.close()


async def relive(power_off_after: int | None, version: int) -> int:
    """How many changes to the disk there were."""
    world = World()
    world.disk.power_off_after = power_off_after
    try:
        await live(world, version)
    except PowerOff:
        world.disk.kill()
    changes = world.disk.operations
    await look(world, version)
    return changes


@pytest.mark.parametrize("version", [VERSION_1, VERSION_2])
def test_a_kill_after_any_change_leaves_every_transaction_whole(version: int) -> None:
    total = run_virtually(lambda: relive(None, version))
    assert total > 40
    for power_off_after in range(1, total + 1):
        try:
            run_virtually(partial(relive, power_off_after, version))
        except AssertionError as error:
            raise AssertionError(f"relive({power_off_after}, {version})") from error
