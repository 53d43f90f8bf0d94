"""A fetch of more partitions than can be looked at in one turn: read, waited for and told in pieces.

It watches each partition from the moment in which it was read, so that nothing comes unnoticed while the
others are read; what comes has all of them read once more. What it needs is given back in pieces, too. Not
here: what is read of a partition (`reads`), and sessions (`sessions`).
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from riverlog.broker.fetch.reads import FetchLimits, FetchReader, FetchReads, PartitionRead
from riverlog.broker.fetch.sessions import Wanted
from riverlog.model.pieces import Pieces
from riverlog.replication.idle_partition import IdlePartition
from riverlog.replication.partition import Partition
from riverlog.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)

LONG_MIN: Final = 257
"""So many partitions are looked at in pieces; fewer take two milliseconds or less."""
LARGE_MIN: Final = 5_000
"""Of so many only a few fetches at a time are in the making."""
_AT_ONCE: Final = 20
_LET_GO_AT_ONCE: Final = 500

T = TypeVar("T")


def count_named(request: FetchRequest) -> int:
    """To be fetched, or to be let go of."""
    count = sum([len(topic.partitions) for topic in request.topics])
    if request.forgotten_topics_data:
        count += sum([len(topic.partitions) for topic in request.forgotten_topics_data])
    return count


def parts_of(request: FetchRequest) -> Iterator[FetchRequest]:
    """Requests that name the same one after the other, a few partitions each."""
    for topic in request.topics:
        for start in range(0, len(topic.partitions), _AT_ONCE):
            some = topic.partitions[start : start + _AT_ONCE]
            named = FetchTopic(topic=topic.topic, topic_id=topic.topic_id, partitions=some)
            yield FetchRequest(topics=[named])
    for forgotten in request.forgotten_topics_data:
        for start in range(0, len(forgotten.partitions), _LET_GO_AT_ONCE):
            numbers = forgotten.partitions[start : start + _LET_GO_AT_ONCE]
            left = ForgottenTopic(topic=forgotten.topic, topic_id=forgotten.topic_id, partitions=numbers)
            yield FetchRequest(forgotten_topics_data=[left])


def drop(elements: list[T]) -> Pieces[None]:
    """Let go of what nobody needs any more."""
    while elements:
        del elements[-_LET_GO_AT_ONCE:]
        yield None


class LongWait:
    """Who waits for records of many partitions, from `begin` to `end`."""

    __slots__ = (
        "_enough_bytes",
        "_have_bytes",
        "_is_watching",
        "_on_end",
        "_timer",
        "_watched",
        "_woken",
        "is_over",
    )

    def __init__(self, enough_bytes: int, *, max_wait_ms: int, on_end: Callable[[], None]) -> None:
        self._enough_bytes = enough_bytes
        self._on_end = on_end
        self._have_bytes = 0
        self._is_watching = False
        self._watched: list[Partition | IdlePartition] = []
        self._woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.is_over = max_wait_ms <= 0
        self._timer = asyncio.get_running_loop().call_later(max(max_wait_ms, 0) / 1000, self.on_disturbance)

    def on_records(self, size_bytes: int) -> None:
        self._have_bytes += size_bytes
        if self._have_bytes >= self._enough_bytes:
            self.on_warmed()

    def on_warmed(self) -> None:
        if not self._woken.done():
            self._woken.set_result(None)

    def on_disturbance(self) -> None:
        self.is_over = True
        self.on_warmed()

    def watch(self, reads: Iterable[PartitionRead]) -> None:
        for _, _, partition in reads:
            if partition is not None:
                partition.watch(self)
                self._watched.append(partition)

    def read(self, reader: FetchReader, wanted: list[Wanted], limits: FetchLimits) -> Pieces[FetchReads]:
        """All of them. What comes meanwhile counts for the next time, and may have been read already."""
        self._have_bytes = 0
        self._woken = asyncio.get_running_loop().create_future()
        reads = FetchReads()
        for start in range(0, len(wanted), _AT_ONCE):
            seen = len(reads.reads)
            reader.read_on(reads, wanted[start : start + _AT_ONCE], limits)
            if not self._is_watching and not self.is_over:
                self.watch(reads.reads[seen:])
            yield None
        self._is_watching = True
        reads.reads += reads.unknown
        if self.is_over:
            reads.give_up()
        self.on_records(reads.size_bytes)
        return reads

    def is_enough(self, reads: FetchReads) -> bool:
        return self.is_over or reads.must_answer or reads.size_bytes >= self._enough_bytes

    def until_woken(self) -> "asyncio.Future[None]":
        return self._woken

    def end(self) -> None:
        self._timer.cancel()
        self._on_end()
        self._let_go_of_some()

    def _let_go_of_some(self) -> None:
        some = self._watched[-_LET_GO_AT_ONCE:]
        del self._watched[-_LET_GO_AT_ONCE:]
        for partition in some:
            partition.unwatch(self)
        if self._watched:
            asyncio.get_running_loop().call_soon(self._let_go_of_some)


def respond(reads: list[PartitionRead], response: FetchResponse) -> Pieces[None]:
    """Tell what was read; takes it out of the list."""
    reads.reverse()
    topic: FetchableTopicResponse | None = None
    while reads:
        wanted, data, _ = reads.pop()
        if topic is None or topic.topic != (wanted.topic or "") or topic.topic_id != wanted.topic_id:
            topic = FetchableTopicResponse(topic=wanted.topic or "", topic_id=wanted.topic_id)
            response.responses.append(topic)
        topic.partitions.append(data)
        yield None
