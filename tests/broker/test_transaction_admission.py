"""First batches of a transaction whose coordinator is elsewhere: what comes between question and answer."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riverlog.broker.exchange.context import RequestContext
from riverlog.broker.exchange.long_work import InPieces
from riverlog.broker.exchange.origin import Origin
from riverlog.broker.exchange.turn import LoopTurn
from riverlog.broker.produce.handler import ProduceHandler
from riverlog.broker.produce.transaction_admission import (
    ProduceAdmission,
    Refusals,
    Support,
    TransactionAdmission,
)
from riverlog.coordinator.groups.coordinator import GroupCoordinator
from riverlog.coordinator.transactions.cluster_transactions import (
    ClusterTransactions,
    Question,
    Verdict,
    VerificationDialect,
)
from riverlog.coordinator.transactions.local_markers import LocalMarkerWriter
from riverlog.coordinator.transactions.markers import Marker
from riverlog.metadata.image import ClusterImage
from riverlog.model.config.group_config import GroupConfig
from riverlog.model.config.transaction_config import TransactionConfig
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, ProducerIdAndEpoch, TopicPartition
from riverlog.model.network import Address
from riverlog.node.adapters.metrics import InMemoryMetrics
from riverlog.records.builder import build_batch
from riverlog.replication.append_outcomes import AppendedRecords
from riverlog.replication.partition import Partition
from riverlog.wire.apis import ApiKey
from riverlog.wire.codec import decode, encode
from riverlog.wire.framing import RequestHeader
from riverlog.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from riverlog.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.coordinator.hosting import Cluster, image, read_now
from tests.replication.replicated import image_of, partition_image
from tests.virtual_time import LoopClock, elapse, run_virtually
from tests.waiting import loop_turns

ME = ProducerIdAndEpoch(7, 1)
AT, BESIDE = TopicPartition("orders", 0), TopicPartition("orders", 1)
MANY = 200


class Coordinator:
    """Answers when the test says so."""

    config = TransactionConfig()

    def __init__(self) -> None:
        self.asked: list[tuple[Question, asyncio.Future[Verdict]]] = []
        self.knows = False

    def ask(self, question: Question) -> "asyncio.Future[Verdict]":
        answer: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
        self.asked.append((question, answer))
        if self.knows:
            self.answer(None)
        return answer

    def answer(self, verdict: Verdict) -> Question:
        question, answer = self.asked.pop(0)
        answer.set_result(verdict)
        return question


class EndedLease:
    timeout_s = 9.0

    def now_s(self) -> float:
        return 100.0

    def is_held(self) -> bool:
        return False


class World:
    def __init__(self, metadata: ClusterImage | None = None) -> None:
        cluster = Cluster()
        groups = GroupCoordinator(
            GroupConfig(), cluster.replicas, lambda: cluster.image, clock=LoopClock(), read=read_now
        )
        cluster.show(metadata or image({"orders": 2}))
        self.coordinator = Coordinator()
        self.replicas = cluster.replicas
        self._markers = LocalMarkerWriter(cluster.replicas, groups, LoopClock())
        self.admission = TransactionAdmission(
            cast(ClusterTransactions, self.coordinator), cluster.replicas, verifies=True
        )

    def admit(self, support: Support = Support.ABORTABLE, *partitions: TopicPartition) -> Any:
        admitted = self.admission.admit("payments", ME, partitions or [AT], support)
        assert isinstance(admitted, Awaitable)

        async def wait() -> Refusals:
            return await admitted

        return asyncio.create_task(wait())

    def at_once(self) -> Refusals:
        admitted = self.admission.admit("payments", ME, [AT], Support.ABORTABLE)
        assert not isinstance(admitted, Awaitable)
        return admitted

    def mark(self, at: TopicPartition = AT) -> None:
        marker = Marker(ME, LeaderEpoch(4), commit=False)
        assert self._markers.write(at, marker, may_be_written=True).result() is None

    def append(self, sequence: int) -> None:
        written = self.partition.append(batch_of(sequence), 0, for_all_replicas=True)
        assert isinstance(written, AppendedRecords)

    @property
    def partition(self) -> Partition:
        found = self.replicas.find(*AT)
        assert isinstance(found, Partition)
        return found

    @property
    def questions(self) -> int:
        return sum(len(each.log.producers.guards) for each in self.replicas)


def batch_of(sequence: int) -> memoryview:
    return memoryview(
        bytearray(
            build_batch(
                [(0, None, b"v", ())],
                producer_id=7,
                producer_epoch=1,
                base_sequence=sequence,
                transactional=True,
            )
        )
    )


def test_an_answer_lets_the_batch_in_and_an_open_transaction_is_not_asked_for_again() -> None:
    async def work() -> None:
        world = World()
        first, second = world.admit(), world.admit()
        await loop_turns()
        assert world.questions == 2
        assert world.coordinator.answer(None) == Question("payments", ME, (AT,), adds=False)
        assert await first == {}
        world.append(0)
        world.coordinator.answer({AT: ErrorCode.NONE})
        assert await second == {}
        assert world.questions == 0
        assert world.at_once() == {}

    run_virtually(work)


def test_an_answer_that_a_marker_has_overtaken_does_not_count() -> None:
    async def work() -> None:
        for support in Support:
            world = World()
            asked = world.admit(support, AT, BESIDE)
            await loop_turns()
            world.mark()
            world.coordinator.answer(None)
            assert await asked == {AT: ErrorCode.NOT_ENOUGH_REPLICAS}, "the other had no marker"
            assert world.questions == 0

    run_virtually(work)


def test_a_marker_that_stands_already_overtakes_an_answer_as_well() -> None:
    async def work() -> None:
        world = World()
        world.append(0)
        world.mark()
        end = world.partition.log.log_end_offset
        asked = world.admit()
        await loop_turns()
        world.mark()
        assert world.partition.log.log_end_offset == end
        world.coordinator.answer(None)
        assert await asked == {AT: ErrorCode.NOT_ENOUGH_REPLICAS}

    run_virtually(work)


def test_who_has_partitions_added_waits_a_little_while_the_transaction_before_is_ended() -> None:
    async def work() -> None:
        world = World()
        asked = world.admit(Support.ADDS)
        await loop_turns()
        world.coordinator.answer({AT: ErrorCode.CONCURRENT_TRANSACTIONS})
        await elapse(0.001)
        world.mark()  # Of the transaction before, between two questions.
        await elapse(1)
        assert world.coordinator.answer(None).adds
        assert await asked == {}
        impatient = world.admit(Support.ADDS)
        tries = 0
        while not impatient.done():
            if world.coordinator.asked:
                world.coordinator.answer(ErrorCode.CONCURRENT_TRANSACTIONS)
                tries += 1
            await elapse(0.001)
        assert impatient.result() == {AT: ErrorCode.CONCURRENT_TRANSACTIONS}
        config = world.coordinator.config
        assert tries == 1 + config.add_retry_max_ms // config.add_retry_pause_ms
        assert world.questions == 0

    run_virtually(work)


def test_an_answer_that_nobody_waits_for_disturbs_nobody() -> None:
    """As when the connection ends in the same turn of the loop; a coroutine would be missed."""

    async def work() -> None:
        world = World()
        world.admission.admit("payments", ME, [AT], Support.ADDS)
        world.coordinator.answer(None)
        world.partition.log.producers.expire(0, expiration_ms=1)
        assert world.questions == 0

    run_virtually(work)


def test_no_answer_has_clients_look_for_the_leader_where_another_may_lead() -> None:
    """A broker that is cut off from the others would be asked again for ever."""

    async def work() -> None:
        world = World(image_of(partition_image()))
        world.replicas.standing.lease = EndedLease()
        for answered, told in (
            (ErrorCode.NETWORK_EXCEPTION, ErrorCode.NOT_LEADER_OR_FOLLOWER),
            (ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_TXN_STATE),
        ):
            asked = world.admit()
            await loop_turns()
            world.coordinator.answer(answered)
            assert await asked == {AT: told}
        assert world.questions == 0

    run_virtually(work)


def test_no_answer_is_told_as_what_clients_try_again_after_and_a_hang_up_leaves_nothing() -> None:
    async def work() -> None:
        world = World()
        for away in (
            ErrorCode.NETWORK_EXCEPTION,
            ErrorCode.NOT_COORDINATOR,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ):
            asked = world.admit()
            await loop_turns()
            world.coordinator.answer(away)
            assert await asked == {AT: ErrorCode.NOT_ENOUGH_REPLICAS}
        asked = world.admit()
        await loop_turns()
        asked.cancel()
        await asyncio.wait([asked])
        assert world.questions == 0

    run_virtually(work)


class LongProduce:
    """One transactional request to very many partitions, driven step by step."""

    def __init__(self, world: World) -> None:
        self._world = world
        admission = ProduceAdmission(world.admission, world.replicas)
        handler = ProduceHandler(world.replicas, admission, LoopTurn(), LoopClock(), InMemoryMetrics())
        data = [PartitionProduceData(index=at, records=batch_of(self.end_of(at))) for at in range(MANY)]
        request = ProduceRequest(
            transactional_id="payments",
            acks=-1,
            timeout_ms=5000,
            topic_data=[TopicProduceData(name=AT.topic, partition_data=data)],
        )
        context = RequestContext(
            RequestHeader(ApiKey.PRODUCE, 11, 1, "raw"), Origin(Address("127.0.0.1", 1), "PLAINTEXT")
        )
        made = handler.handle(request, context)
        assert isinstance(made, InPieces)
        self._pieces = made.pieces

    def end_of(self, index: int) -> int:
        found = self._world.replicas.find(AT.topic, index)
        assert isinstance(found, Partition)
        return found.log.log_end_offset

    async def go_on(self, is_there: Callable[[], bool]) -> ProduceResponse | None:
        """Its response, if it ends before."""
        while not is_there():
            try:
                waits_for = next(self._pieces)
            except StopIteration as stop:
                response: ProduceResponse = stop.value
                return response
            if waits_for is not None:
                asking = asyncio.ensure_future(waits_for)
                await loop_turns()
                if self._world.coordinator.asked:
                    self._world.coordinator.answer(None)
                await asyncio.wait((asking,))
        return None

    async def errors(self) -> dict[int, int]:
        response = await self.go_on(lambda: False)
        assert response is not None
        replies = response.responses[0].partition_responses
        return {each.index: each.error_code for each in replies if each.error_code}

    def leave(self) -> None:
        self._pieces.close()


@pytest.mark.parametrize("is_answered_at_once", [False, True])
def test_a_marker_between_two_of_very_many_batches_keeps_the_later_ones_out(
    *, is_answered_at_once: bool
) -> None:
    async def work() -> None:
        world = World(image({"orders": MANY}))
        if is_answered_at_once:
            world.coordinator.knows = True
        produce = LongProduce(world)
        await produce.go_on(lambda: produce.end_of(3) == 1)
        for index in (3, 150):
            world.mark(TopicPartition("orders", index))
        assert await produce.errors() == {150: ErrorCode.NOT_ENOUGH_REPLICAS}
        assert [produce.end_of(index) for index in (3, 149, 150, 151)] == [2, 1, 1, 1]
        assert world.questions == 0

    run_virtually(work)


def test_a_transaction_that_is_ended_between_two_of_very_many_batches_is_not_gone_on_with() -> None:
    async def work() -> None:
        world = World(image({"orders": MANY}))
        first = LongProduce(world)
        assert await first.errors() == {}
        second = LongProduce(world)
        await second.go_on(lambda: second.end_of(3) == 2)
        world.mark(TopicPartition("orders", 150))
        assert await second.errors() == {150: ErrorCode.NOT_ENOUGH_REPLICAS}
        assert [second.end_of(index) for index in (149, 150, 151)] == [2, 2, 2]

    run_virtually(work)


def test_a_client_that_leaves_between_two_of_very_many_batches_leaves_no_questions() -> None:
    async def work() -> None:
        world = World(image({"orders": MANY}))
        produce = LongProduce(world)
        await produce.go_on(lambda: produce.end_of(3) == 1)
        produce.leave()
        assert world.questions == 0

    run_virtually(work)


questions = st.builds(
    Question,
    st.sampled_from(["a", "b", "c"]),
    st.builds(ProducerIdAndEpoch, st.integers(0, 3), st.integers(0, 2)),
    st.lists(
        st.builds(TopicPartition, st.sampled_from(["t", "u"]), st.integers(0, 3)), unique=True, min_size=1
    ).map(tuple),
    st.booleans(),
)


@given(st.lists(questions, unique=True), st.sampled_from([ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE]))
def test_every_question_is_asked_once_and_has_its_own_answer(asked: list[Question], error: ErrorCode) -> None:
    dialect, waiting = VerificationDialect(), deque(asked)
    seen: list[Question] = []
    while waiting:
        taken = dialect.take(waiting)
        assert len({each.transactional_id for each in taken}) == len(taken) > 0
        request = dialect.request(taken)
        assert decode(AddPartitionsToTxnRequest, 5, encode(request, 5))[0] == request
        response = AddPartitionsToTxnResponse(
            results_by_transaction=[
                AddPartitionsToTxnResult(
                    transactional_id=each.transactional_id,
                    topic_results=[
                        AddPartitionsToTxnTopicResult(
                            name=topic.name,
                            results_by_partition=[
                                AddPartitionsToTxnPartitionResult(
                                    partition_index=at, partition_error_code=error
                                )
                                for at in topic.partitions
                            ],
                        )
                        for topic in each.topics
                    ],
                )
                for each in request.transactions
            ]
        )
        assert dialect.answers(taken, response) == {
            each: dict.fromkeys(each.partitions, error) for each in taken
        }
        assert dialect.answers(taken, AddPartitionsToTxnResponse()) == {}
        refused = AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        assert set(dialect.answers(taken, refused).values()) == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
        seen += taken
    assert sorted(seen) == sorted(asked)
