"""What is open in a partition and unknown to the coordinator is aborted at a start; all else is left."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from riverlog.coordinator.transactions.local_markers import LocalMarkerWriter
from riverlog.coordinator.transactions.lost import is_known
from riverlog.coordinator.transactions.markers import Marker, MarkerWritten
from riverlog.coordinator.transactions.states import TransactionState
from riverlog.coordinator.transactions.transaction import VERSION_1, VERSION_2, Transaction
from riverlog.metadata.image import ClusterImage
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId, ProducerIdAndEpoch, TopicPartition
from riverlog.model.internal_topics import TRANSACTIONS_TOPIC
from tests.coordinator.hosting import image
from tests.coordinator.test_transaction_crash import NAME, PARTITIONS, TOPICS, Stack, World, outcomes
from tests.virtual_time import run_virtually

HERE = PARTITIONS[0]
LOST = ProducerIdAndEpoch(4711, 3)


def _led_by_another(topics: dict[str, int]) -> ClusterImage:
    """The first partition of the transaction log is another broker's."""
    shown = image(topics)
    log = shown.topics[TRANSACTIONS_TOPIC]
    away = log.partitions[0]._replace(leader=NodeId(2), isr=(NodeId(2),))
    kept = log._replace(partitions=(away, *log.partitions[1:]))
    return ClusterImage(
        brokers=shown.brokers,
        topics={**shown.topics, TRANSACTIONS_TOPIC: kept},
        topic_names=shown.topic_names,
    )


def _stack(show: Callable[[dict[str, int]], ClusterImage] = image) -> Stack:
    stack = Stack(World())
    stack.cluster.show(show(TOPICS))
    return stack


def test_what_no_coordinator_knows_is_aborted() -> None:
    async def check() -> None:
        stack = _stack()
        stack._produce(HERE, LOST, 1)
        await stack.transactions.load_all([HERE])
        assert outcomes(stack.partition(HERE).log) == ({1: False}, 1)
        await stack.close()

    run_virtually(check)


def test_what_the_coordinator_knows_is_left_open() -> None:
    async def check() -> None:
        stack = _stack()
        await stack.start()
        me = await stack.take_over()
        assert await stack.transactions.add_partitions(NAME, me, [HERE], client_version=VERSION_2) is None
        stack._produce(HERE, me, 1)
        await stack.transactions.load_all([HERE])
        assert len(stack.partition(HERE).log.producers.open_transactions()) == 1
        await stack.close()

    run_virtually(check)


@pytest.mark.parametrize("was_switched_off", [True, False])
def test_nothing_is_aborted_by_a_broker_that_does_not_lead_the_whole_transaction_log(
    was_switched_off: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def check() -> None:
        stack = _stack(_led_by_another)
        stack._produce(HERE, LOST, 1)
        await stack.transactions.load_all([HERE], was_switched_off=was_switched_off)
        assert len(stack.partition(HERE).log.producers.open_transactions()) == 1
        assert ("riverlog txn list" in caplog.text) == was_switched_off
        await stack.close()

    run_virtually(check)


def test_what_is_open_in_a_copy_is_left_to_the_leader() -> None:
    """There it may have ended long since."""

    def show(topics: dict[str, int]) -> ClusterImage:
        shown = image(topics)
        topic = shown.topics[HERE.topic]
        away = tuple(each._replace(leader=NodeId(2)) for each in topic.partitions)
        return replace(shown, topics={**shown.topics, HERE.topic: topic._replace(partitions=away)})

    async def check() -> None:
        stack = _stack()
        stack._produce(HERE, LOST, 1)
        stack.cluster.show(show(TOPICS))
        wrote: list[TopicPartition] = []

        def write(_: LocalMarkerWriter, at: TopicPartition, *__: object, **___: object) -> MarkerWritten:
            wrote.append(at)
            return asyncio.get_running_loop().create_future()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(LocalMarkerWriter, "write", write)
            async with asyncio.timeout(60):
                await stack.transactions.load_all([HERE])
        assert not wrote
        await stack.close()

    run_virtually(check)


def test_a_transaction_that_begins_meanwhile_is_left_open() -> None:
    async def check() -> None:
        stack = _stack()
        await stack.start()
        me = await stack.take_over()
        also_here = PARTITIONS[1]
        for partition in (HERE, also_here):
            stack._produce(partition, LOST, 1)
        transactions, write = stack.transactions, LocalMarkerWriter.write

        async def begin_another(marker: MarkerWritten) -> ErrorCode | None:
            added = transactions.add_partitions(NAME, me, [also_here], client_version=VERSION_2)
            assert await added is None
            stack._produce(also_here, me, 2)
            return await marker

        def write_slowly(
            writer: LocalMarkerWriter, at: TopicPartition, marker: Marker, *, may_be_written: bool
        ) -> MarkerWritten:
            written = write(writer, at, marker, may_be_written=may_be_written)
            return asyncio.ensure_future(begin_another(written)) if at == HERE else written

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(LocalMarkerWriter, "write", write_slowly)
            await transactions.load_all([HERE, also_here])
        still_open = stack.partition(also_here).log.producers.open_transactions()
        assert [producer_id for producer_id, _ in still_open] == [me.producer_id]
        await stack.close()

    run_virtually(check)


@pytest.mark.parametrize(
    ("state", "version", "epochs"),
    [
        (TransactionState.ONGOING, VERSION_1, {5}),
        (TransactionState.ONGOING, VERSION_2, {5}),
        (TransactionState.PREPARE_COMMIT, VERSION_1, {4, 5}),
        (TransactionState.PREPARE_ABORT, VERSION_2, {4}),
        (TransactionState.COMPLETE_COMMIT, VERSION_2, set()),
        (TransactionState.EMPTY, VERSION_1, set()),
    ],
)
def test_a_transaction_is_known_in_the_epochs_of_its_batches(
    state: TransactionState, version: int, epochs: set[int]
) -> None:
    transaction = Transaction(
        NAME, state, ProducerIdAndEpoch(7, 5), 1000, 0, 0, frozenset({HERE}), client_version=version
    )

    def known(epoch: int, producer_id: int = 7, at: TopicPartition = HERE) -> bool:
        return is_known([transaction], at, ProducerIdAndEpoch(producer_id, epoch))

    assert {epoch for epoch in range(3, 8) if known(epoch)} == epochs
    assert not any(known(epoch, producer_id=8) for epoch in range(3, 8))
    assert not any(known(epoch, at=PARTITIONS[1]) for epoch in range(3, 8))


def test_an_id_of_which_a_crash_may_have_taken_the_last_epochs_gets_another_producer_id() -> None:
    """A partition takes the batches of an epoch that was used before for repetitions."""

    async def check() -> None:
        world = World()
        stack = Stack(world)
        await stack.start()
        before = await stack.take_over()
        await stack.close()
        stack = Stack(world)
        await stack.start()
        after = await stack.take_over()
        assert after.producer_id != before.producer_id
        assert (await stack.take_over()).producer_id == after.producer_id
        await stack.close()

    run_virtually(check)


def test_a_transaction_log_that_cannot_be_loaded_yet_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def check() -> None:
        stack = _stack()
        stack._produce(HERE, LOST, 1)
        runtime = stack.transactions._runtime
        every_shard, tries = runtime.every_shard, [1, 2, 3]
        monkeypatch.setattr(runtime, "every_shard", lambda: None if tries and tries.pop() else every_shard())
        await stack.transactions.load_all([HERE])
        assert outcomes(stack.partition(HERE).log) == ({1: False}, 1)
        await stack.close()

    run_virtually(check)
