"""Markers: written only when the end is decided for good, tried again, and completed only when all stand."""

import asyncio
from dataclasses import dataclass, field

import pytest

from riverlog.coordinator.transactions.coordinator import TransactionCoordinator
from riverlog.coordinator.transactions.markers import Marker, MarkerSender, MarkerWritten, Work
from riverlog.coordinator.transactions.shard import Initialised
from riverlog.coordinator.transactions.states import TransactionState
from riverlog.coordinator.transactions.transaction import VERSION_2, Transaction
from riverlog.metadata.producer_ids import ProducerIds
from riverlog.model.config.slices import LogConfig
from riverlog.model.config.transaction_config import TransactionConfig
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, ProducerIdAndEpoch, TopicPartition
from riverlog.model.internal_topics import TRANSACTIONS_TOPIC
from riverlog.testing.simulated_store import SimulatedEnsemble
from tests.coordinator.hosting import NODE, Cluster, HeldExecutor, Logs, image, read_now
from tests.virtual_time import LoopClock, elapse, run_virtually

ME = ProducerIdAndEpoch(7, 1)
HERE, THERE = TopicPartition("orders", 0), TopicPartition("orders", 1)
PREPARED = Transaction(
    "payments", TransactionState.PREPARE_COMMIT, ME, 1000, 0, partitions=frozenset({HERE, THERE})
)
WORK = Work(0, LeaderEpoch(5), PREPARED)


@dataclass
class Writer:
    """Answers what it is told to, one answer for each attempt; then that the marker stands."""

    answers: dict[TopicPartition, list[ErrorCode | None]] = field(default_factory=dict)
    written: list[tuple[TopicPartition, Marker, bool]] = field(default_factory=list)

    def write(self, partition: TopicPartition, marker: Marker, *, may_be_written: bool) -> MarkerWritten:
        self.written.append((partition, marker, may_be_written))
        answers = self.answers.get(partition)
        return _done(answers.pop(0) if answers else None)


@dataclass
class Completions:
    answers: list[ErrorCode | None] = field(default_factory=list)
    works: list[Work] = field(default_factory=list)

    def __call__(self, work: Work) -> MarkerWritten:
        self.works.append(work)
        return _done(self.answers.pop(0) if self.answers else None)


def _done(error: ErrorCode | None) -> MarkerWritten:
    future: MarkerWritten = asyncio.get_running_loop().create_future()
    future.set_result(error)
    return future


def send(
    writer: Writer, completions: Completions, *, may_be_written: bool = False, is_ours: bool = True
) -> int:
    """Send, and let an hour pass; how many transactions still wait."""

    async def work() -> int:
        sender = MarkerSender(writer, completions, lambda work: is_ours)
        sender.send(WORK, may_be_written=may_be_written)
        sender.send(WORK, may_be_written=may_be_written)
        await elapse(3600)
        waiting = len(sender)
        await sender.close()
        return waiting

    return run_virtually(work)


def test_what_can_be_written_at_once_is_completed_at_once() -> None:
    async def work() -> None:
        writer, completions = Writer(), Completions()
        MarkerSender(writer, completions, lambda work: True).send(WORK, may_be_written=False)
        marker = Marker(ME, LeaderEpoch(5), commit=True)
        assert writer.written == [(HERE, marker, False), (THERE, marker, False)]
        assert completions.works == [WORK]

    run_virtually(work)


@pytest.mark.parametrize(
    "error", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_ENOUGH_REPLICAS]
)
def test_a_marker_that_cannot_be_written_is_tried_again_before_anything_is_completed(
    error: ErrorCode,
) -> None:
    writer, completions = Writer({THERE: [error, error, error]}), Completions()
    assert send(writer, completions) == 0
    assert [place for place, _, _ in writer.written] == [HERE, THERE, THERE, THERE, THERE]
    assert [again for _, _, again in writer.written] == [False, False, True, True, True]
    assert completions.works == [WORK]


def test_a_partition_that_is_gone_needs_no_marker() -> None:
    writer, completions = Writer({HERE: [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]}), Completions()
    assert send(writer, completions) == 0
    assert completions.works[0] == WORK


def test_the_markers_of_a_shard_that_serves_no_more_are_left_to_the_one_that_does() -> None:
    async def work() -> None:
        writer, completions = Writer({HERE: [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 1000}), Completions()
        leads = True
        sender = MarkerSender(writer, completions, lambda work: leads)
        sender.send(WORK, may_be_written=False)
        await elapse(10)
        assert len(sender) == 1
        leads, tries = False, len(writer.written)
        await elapse(10)
        assert (len(sender), len(writer.written)) == (0, tries)
        assert completions.works == []

    run_virtually(work)


def test_a_shard_that_is_loaded_again_under_its_epoch_has_markers_written_that_were_just_given_up() -> None:
    """Between the moment in which the shard was gone and the one in which that is noted."""

    async def work() -> None:
        writer, completions = Writer({HERE: [ErrorCode.NOT_LEADER_OR_FOLLOWER]}), Completions()

        def is_ours(work: Work) -> bool:
            asyncio.get_running_loop().call_soon(lambda: sender.send(WORK, may_be_written=True))
            return False

        sender = MarkerSender(writer, completions, is_ours)
        sender.send(WORK, may_be_written=False)
        await elapse(10)
        assert completions.works == [WORK]
        assert len(sender) == 0

    run_virtually(work)


def test_a_coordinator_that_was_replaced_gives_up() -> None:
    error = ErrorCode.TRANSACTION_COORDINATOR_FENCED
    writer, completions = Writer({HERE: [error, error]}), Completions()
    assert send(writer, completions) == 0
    assert completions.works == []


def test_a_partition_in_which_a_later_epoch_has_been_needs_no_marker() -> None:
    """A power cut took the end of the coordinator's log; giving up would leave the id in use for ever."""
    writer, completions = Writer({HERE: [ErrorCode.INVALID_PRODUCER_EPOCH]}), Completions()
    assert send(writer, completions) == 0
    assert completions.works[0] == WORK


def test_a_completion_that_cannot_be_written_is_tried_again() -> None:
    errors: list[ErrorCode | None] = [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 3
    completions = Completions(errors)
    assert send(Writer(), completions) == 0
    assert len(completions.works) == 4


def test_a_completion_elsewhere_is_left_to_the_new_coordinator() -> None:
    completions = Completions([ErrorCode.NOT_COORDINATOR] * 3)
    assert send(Writer(), completions, is_ours=False) == 0
    assert len(completions.works) == 2


def test_a_completion_for_which_there_is_no_room_is_tried_again_while_the_shard_is_served() -> None:
    """A full disk is told as NOT_COORDINATOR, too; giving up left the id in use until the next start."""
    completions = Completions([ErrorCode.NOT_COORDINATOR] * 3)
    assert send(Writer(), completions) == 0
    assert len(completions.works) == 4


def test_no_marker_is_written_before_the_decision_is_committed() -> None:
    async def work() -> None:
        executor = HeldExecutor()
        cluster = Cluster(Logs(config=LogConfig(acks_fsync=True)), executor)
        writer = Writer()
        store = SimulatedEnsemble().connect()
        coordinator = TransactionCoordinator(
            TransactionConfig(),
            cluster.replicas,
            ProducerIds(store, NODE),
            writer,
            clock=LoopClock(),
            read=read_now,
        )
        cluster.follow(coordinator.apply)
        cluster.show(image({TRANSACTIONS_TOPIC: 1}))
        begun = asyncio.create_task(coordinator.init_producer_id("payments", 1000, None))
        await elapse(0.01)
        assert not begun.done()
        await executor.release()
        answer = await begun
        assert isinstance(answer, Initialised)
        added = coordinator.add_partitions("payments", answer.producer, [HERE], client_version=VERSION_2)
        assert not added.done()
        again = coordinator.add_partitions("payments", answer.producer, [HERE], client_version=VERSION_2)
        assert not again.done(), "a repetition waits for what it repeats"
        await executor.release()
        assert (added.result(), again.result()) == (None, None)
        ended = asyncio.create_task(
            coordinator.end("payments", answer.producer, commit=True, client_version=VERSION_2)
        )
        await elapse(0.01)
        assert not ended.done()
        assert writer.written == []
        await executor.release()
        assert await ended == ProducerIdAndEpoch(answer.producer.producer_id, 1)
        assert [place for place, _, _ in writer.written] == [HERE]
        await executor.release()
        await coordinator.close()

    run_virtually(work)


def test_a_decision_that_is_not_committed_in_time_is_carried_out_when_it_is() -> None:
    async def work() -> None:
        executor = HeldExecutor()
        cluster = Cluster(Logs(config=LogConfig(acks_fsync=True)), executor)
        writer = Writer()
        coordinator = TransactionCoordinator(
            TransactionConfig(),
            cluster.replicas,
            ProducerIds(SimulatedEnsemble().connect(), NODE),
            writer,
            clock=LoopClock(),
            read=read_now,
        )
        cluster.follow(coordinator.apply)
        cluster.show(image({TRANSACTIONS_TOPIC: 1}))
        begun = asyncio.create_task(coordinator.init_producer_id("payments", 60_000, None))
        await elapse(0.01)
        await executor.release()
        answer = await begun
        assert isinstance(answer, Initialised)
        coordinator.add_partitions("payments", answer.producer, [HERE], client_version=VERSION_2)
        await executor.release()
        ended = await coordinator.end("payments", answer.producer, commit=True, client_version=VERSION_2)
        assert ended is ErrorCode.COORDINATOR_NOT_AVAILABLE, "the disk took longer than the client may wait"
        assert writer.written == []
        await executor.release()
        await elapse(5)
        await executor.release()
        assert [place for place, _, _ in writer.written] == [HERE]
        await coordinator.close()

    run_virtually(work)
