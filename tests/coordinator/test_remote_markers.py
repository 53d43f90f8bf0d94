"""Markers at other brokers: gathered for each, one request in flight, the leader looked up each time."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from riverlog.client.core.events import Outcome
from riverlog.client.peer_connection import UnansweredError
from riverlog.coordinator.transactions.markers import Marker, MarkerWritten
from riverlog.coordinator.transactions.remote_markers import (
    MARKERS_AT_ONCE,
    ClusterMarkerWriter,
    MarkerDialect,
    WantedMarker,
)
from riverlog.metadata.image import ClusterImage
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, NodeId, ProducerIdAndEpoch, TopicPartition
from riverlog.wire.apis import ApiKey
from riverlog.wire.codec import decode, encode
from riverlog.wire.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tests.coordinator.hosting import NODE, image
from tests.virtual_time import run_virtually
from tests.waiting import loop_turns

OTHER = NodeId(2)
AT = [TopicPartition("orders", index) for index in range(4)]


def marker(producer_id: int = 7, epoch: int = 1, *, commit: bool = True) -> Marker:
    return Marker(ProducerIdAndEpoch(producer_id, epoch), LeaderEpoch(5), commit, 2)


def response(
    request: WriteTxnMarkersRequest, error: Callable[[int, str, int], ErrorCode]
) -> WriteTxnMarkersResponse:
    """What a broker makes of a request, when each marker comes to this error."""
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=each.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(
                                partition_index=at, error_code=error(each.producer_id, topic.name, at)
                            )
                            for at in topic.partition_indexes
                        ],
                    )
                    for topic in each.topics
                ],
            )
            for each in request.markers
        ]
    )


markers = st.builds(
    Marker,
    st.builds(ProducerIdAndEpoch, st.integers(0, 3), st.integers(0, 2)),
    st.just(LeaderEpoch(5)),
    st.booleans(),
    st.sampled_from([0, 2]),
)
wanted = st.builds(
    WantedMarker, st.builds(TopicPartition, st.sampled_from(["a", "b"]), st.integers(0, 3)), markers
)


@given(st.lists(wanted, unique=True), st.data())
def test_every_marker_is_asked_for_once_and_has_its_own_answer(
    questions: list[WantedMarker], data: st.DataObject
) -> None:
    dialect, waiting = MarkerDialect(), deque(questions)
    seen: list[WantedMarker] = []
    while waiting:
        taken = dialect.take(waiting)
        assert taken, "at least one"
        producers = {each.marker.producer.producer_id: each.marker for each in taken}
        assert all(producers[each.marker.producer.producer_id] == each.marker for each in taken)
        request = dialect.request(taken)
        assert decode(WriteTxnMarkersRequest, 2, encode(request, 2))[0] == request
        errors = {
            (each.marker.producer.producer_id, *each.partition): data.draw(
                st.sampled_from([ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER])
            )
            for each in taken
        }
        answers = dialect.answers(taken, response(request, lambda *at, errors=errors: errors[at]))
        for each in taken:
            error = errors[each.marker.producer.producer_id, *each.partition]
            assert answers[each] is (None if error is ErrorCode.NONE else error)
        seen += taken
    assert sorted(seen) == sorted(questions)


def test_a_request_is_bounded_and_what_the_broker_passes_over_is_not_answered() -> None:
    dialect = MarkerDialect()
    waiting = deque(WantedMarker(TopicPartition("t", at), marker()) for at in range(MARKERS_AT_ONCE + 1))
    taken = dialect.take(waiting)
    assert (len(taken), len(waiting)) == (MARKERS_AT_ONCE, 1)
    assert dialect.answers(taken, WriteTxnMarkersResponse()) == {}


class Peer:
    """The other brokers: each request waits until the test answers it."""

    def __init__(self) -> None:
        self.asked: list[tuple[NodeId, WriteTxnMarkersRequest, asyncio.Future[Any]]] = []

    def ask(self, node_id: NodeId, key: ApiKey, message: Any) -> "asyncio.Future[Any]":
        assert key is ApiKey.WRITE_TXN_MARKERS
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.asked.append((node_id, message, answer))
        return answer

    async def answer(self, error: ErrorCode = ErrorCode.NONE) -> int:
        """The oldest request that waits; how many markers were in it."""
        _, request, answer = self.asked.pop(0)
        answer.set_result(response(request, lambda *_: error))
        await loop_turns()
        return sum(len(topic.partition_indexes) for each in request.markers for topic in each.topics)

    async def fail(self) -> None:
        self.asked.pop(0)[2].set_exception(UnansweredError(Outcome.UNKNOWN, "gone"))
        await loop_turns()


class Local:
    """What this node leads stands at once."""

    def __init__(self, shown: Callable[[], ClusterImage]) -> None:
        self.image = shown
        self.written: list[TopicPartition] = []

    def write(self, partition: TopicPartition, marker: Marker, *, may_be_written: bool) -> MarkerWritten:
        written: MarkerWritten = asyncio.get_running_loop().create_future()
        found = self.image().partition(*partition)
        if found is None:
            written.set_result(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        elif found.leader != NODE:
            written.set_result(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        else:
            self.written.append(partition)
            written.set_result(None)
        return written


def make() -> tuple[Peer, Local, ClusterMarkerWriter, list[ClusterImage]]:
    shown = [image({"orders": 4}, leader=OTHER)]
    peer, local = Peer(), Local(lambda: shown[-1])
    return peer, local, ClusterMarkerWriter(local, peer.ask, lambda: shown[-1], NODE), shown


def test_what_is_led_here_is_written_at_once_and_no_broker_is_asked() -> None:
    async def work() -> None:
        peer, local, writer, shown = make()
        shown.append(image({"orders": 4}, leader=NODE))
        assert writer.write(AT[0], marker(), may_be_written=False).result() is None
        assert (local.written, peer.asked) == ([AT[0]], [])
        shown.append(ClusterImage())
        gone = writer.write(AT[0], marker(), may_be_written=False)
        assert gone.result() is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        shown.append(image({"orders": 4}, leader=OTHER))
        no_leader = shown[-1].topics["orders"].partitions[0]._replace(leader=None)
        orders = shown[-1].topics["orders"]._replace(partitions=(no_leader,))
        shown.append(ClusterImage(topics={"orders": orders}))
        nobody = writer.write(AT[0], marker(), may_be_written=False)
        assert nobody.result() is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert peer.asked == []

    run_virtually(work)


def test_one_request_is_in_flight_for_a_broker_and_the_next_takes_all_that_waits() -> None:
    async def work() -> None:
        peer, _, writer, _ = make()
        first = writer.write(AT[0], marker(), may_be_written=False)
        later = [writer.write(at, marker(), may_be_written=False) for at in AT[1:]]
        later.append(writer.write(AT[1], marker(8), may_be_written=False))
        assert [node_id for node_id, _, _ in peer.asked] == [OTHER]
        assert await peer.answer() == 1
        assert first.result() is None
        assert not any(each.done() for each in later)
        assert len(peer.asked) == 1
        assert await peer.answer(ErrorCode.NOT_LEADER_OR_FOLLOWER) == 4
        assert {each.result() for each in later} == {ErrorCode.NOT_LEADER_OR_FOLLOWER}
        assert peer.asked == []

    run_virtually(work)


def test_a_broker_that_does_not_answer_is_told_to_all_who_wait_for_it_and_asked_again_later() -> None:
    async def work() -> None:
        peer, _, writer, shown = make()
        waiting = [writer.write(at, marker(), may_be_written=False) for at in AT[:3]]
        await peer.fail()
        assert {each.result() for each in waiting} == {ErrorCode.NETWORK_EXCEPTION}
        assert peer.asked == []
        shown.append(image({"orders": 4}, leader=3))
        again = writer.write(AT[0], marker(), may_be_written=True)
        assert [node_id for node_id, _, _ in peer.asked] == [NodeId(3)], "the leader of now"
        await peer.answer()
        assert again.result() is None

    run_virtually(work)


def test_a_topic_that_only_the_other_broker_does_not_know_is_not_gone() -> None:
    async def work() -> None:
        peer, _, writer, _ = make()
        waiting = writer.write(AT[0], marker(), may_be_written=False)
        await peer.answer(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        assert waiting.result() is ErrorCode.NOT_LEADER_OR_FOLLOWER

    run_virtually(work)


def test_a_wait_that_is_given_up_disturbs_nobody_else() -> None:
    async def work() -> None:
        peer, _, writer, _ = make()
        given_up = writer.write(AT[0], marker(), may_be_written=False)
        other = writer.write(AT[0], marker(), may_be_written=False)
        given_up.cancel()
        while peer.asked:
            await peer.answer()
        assert other.result() is None

    run_virtually(work)
