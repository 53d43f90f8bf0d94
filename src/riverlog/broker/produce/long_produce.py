"""What a produce of very many partitions needs to be worked on in pieces; the writing is in `handler`."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Final, TypeVar
from uuid import UUID

from riverlog.broker.exchange.turn import LoopTurn
from riverlog.broker.produce.delayed_produce import DelayedProduce, Unacknowledged
from riverlog.model.pieces import Outside, Pieces
from riverlog.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

T = TypeVar("T")

LARGE_MIN: Final = 5_000
"""Of so many partitions only a few requests at a time are worked on."""
_ACKNOWLEDGED_AT_ONCE: Final = 200
_LOOKED_AT_ONCE: Final = 50


def count_named(request: ProduceRequest) -> int:
    return sum([len(topic.partition_data) for topic in request.topic_data])


def parts_of(request: ProduceRequest) -> Iterator[ProduceRequest]:
    """Requests like it with some of the partitions each; one at least."""
    acks, transactional_id = request.acks, request.transactional_id
    yield ProduceRequest(acks=acks, transactional_id=transactional_id)
    for topic in request.topic_data:
        for start in range(0, len(topic.partition_data), _LOOKED_AT_ONCE):
            some = topic.partition_data[start : start + _LOOKED_AT_ONCE]
            named = TopicProduceData(name=topic.name, topic_id=topic.topic_id, partition_data=some)
            yield ProduceRequest(acks=acks, transactional_id=transactional_id, topic_data=[named])


def by_place_in_pieces(
    topics: list[TopicProduceData],
) -> Pieces[list[tuple[TopicProduceData, Iterable[PartitionProduceData]]]]:
    """Kafka takes a topic that is named twice as one, and of a partition that is named twice the last."""
    merged: dict[tuple[str, UUID | None], tuple[TopicProduceData, dict[int, PartitionProduceData]]] = {}
    for topic in topics:
        _, wanted = merged.setdefault((topic.name, topic.topic_id), (topic, {}))
        for data in topic.partition_data:
            wanted[data.index] = data
            yield None
    return [(topic, wanted.values()) for topic, wanted in merged.values() if wanted]


class LongAcknowledgement:
    """Waits for what was written piece by piece, each from the turn in which it was written."""

    def __init__(
        self, response: ProduceResponse, ends_s: float, now_s: Callable[[], float], turn: LoopTurn
    ) -> None:
        self._response = response
        self._ends_s = ends_s
        self._now_s = now_s
        self._turn = turn
        self._waits: list[DelayedProduce] = []

    def wait_for(self, written: Iterable[Unacknowledged]) -> None:
        for each in written:
            if not self._waits or len(self._waits[-1]) >= _ACKNOWLEDGED_AT_ONCE:
                left_s = max(self._ends_s - self._now_s(), 0)
                self._waits.append(DelayedProduce(self._response, (), left_s, self._turn))
            self._waits[-1].wait_for(each)

    def wait(self) -> Pieces[None]:
        """Until all of them are committed, or never will be, or the time is over."""
        while self._waits:
            wait = self._waits[-1]
            if wait.is_settled:
                wait.make()
                yield None
            else:
                yield from outside(wait.answer())
            self._waits.pop().drop()

    def give_up(self) -> None:
        """What is waited for still. Can be called afterwards."""
        for wait in self._waits:
            wait.drop()


def outside(waiting: Awaitable[T]) -> Pieces[T]:
    """Wait for what others do; given up with the work."""
    task = asyncio.ensure_future(waiting)
    try:
        yield Outside(task)
        return task.result()
    finally:
        task.cancel()
