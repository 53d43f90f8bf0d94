"""The cache of fetch sessions: its bound, who gives way to whom, epochs."""

from collections.abc import Iterator
from itertools import count

import pytest

from riverlog.broker.fetch.sessions import FetchSession, FetchSessions, Wanted
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData

MINUTE_MS = 60_000


class Cache:
    """A cache under a clock that stands still until it is moved, with ids 1, 2, 3..."""

    def __init__(self, slots: int) -> None:
        self.now_ms = 0
        ids: Iterator[int] = count(1)
        self.sessions = FetchSessions(slots, now_ms=lambda: self.now_ms, random_id=lambda: next(ids))

    def open(self, size: int = 1) -> FetchSession | None:
        return self.sessions.open([wanted(index) for index in range(size)], uses_topic_ids=False)

    def use(self, session: FetchSession, version: int = 12) -> FetchSession | ErrorCode:
        request = FetchRequest(session_id=session.id, session_epoch=session.epoch)
        return self.sessions.resume(request, version)


def wanted(index: int) -> Wanted:
    return Wanted("orders", None, FetchPartition(partition=index))


def test_a_full_cache_of_young_sessions_gives_no_more() -> None:
    cache = Cache(2)
    assert [cache.open() is not None for _ in range(3)] == [True, True, False]
    assert len(cache.sessions) == 2


def test_a_session_unused_for_two_minutes_gives_way_to_any() -> None:
    cache = Cache(2)
    stale, used = cache.open(5), cache.open(5)
    assert stale is not None
    assert used is not None
    cache.now_ms = 2 * MINUTE_MS
    cache.use(used)
    cache.now_ms += 1
    assert cache.open(1) is not None
    assert cache.use(stale) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert cache.use(used) is used


@pytest.mark.parametrize(("new_size", "gets_in"), [(2, False), (3, True), (9, True)])
def test_an_old_session_in_use_gives_way_only_to_one_as_large(new_size: int, gets_in: bool) -> None:
    cache = Cache(2)
    small, large = cache.open(3), cache.open(7)
    assert small is not None
    assert large is not None
    cache.now_ms = 2 * MINUTE_MS
    for session in (small, large):
        cache.use(session)
    cache.now_ms += MINUTE_MS
    assert (cache.open(new_size) is not None) == gets_in
    assert (cache.use(small) is small) != gets_in
    assert cache.use(large) is large


def test_a_cache_without_slots_never_has_sessions() -> None:
    assert Cache(0).open() is None


def test_the_epoch_counts_up_and_wraps_to_one() -> None:
    cache = Cache(1)
    session = cache.open()
    assert session is not None
    assert session.epoch == 1
    cache.use(session)
    assert session.epoch == 2
    session.epoch = 2**31 - 1
    cache.use(session)
    assert session.epoch == 1


def test_a_session_by_name_is_not_resumed_by_id() -> None:
    cache = Cache(1)
    session = cache.open()
    assert session is not None
    assert cache.use(session, version=13) == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert cache.use(session, version=12) is session


def test_a_partition_with_records_goes_to_the_end_and_one_without_news_is_not_told() -> None:
    session = FetchSession(1, [wanted(index) for index in range(3)], uses_topic_ids=False, now_ms=0)
    first = session.wanted["orders", 0]
    quiet = PartitionData(partition_index=0, high_watermark=4, log_start_offset=0, records=b"")
    assert session.note_reply(first, quiet)
    assert not session.note_reply(first, quiet)
    assert session.note_reply(first, PartitionData(high_watermark=4, log_start_offset=0, records=b"x"))
    assert [index for _, index in session.wanted] == [1, 2, 0]
    assert session.note_reply(first, PartitionData(high_watermark=4, log_start_offset=1, records=b""))
    assert session.note_reply(first, PartitionData(error_code=1, high_watermark=-1, records=b""))
    assert session.note_reply(first, PartitionData(high_watermark=4, log_start_offset=1, records=b""))


def test_changes_and_forgotten_partitions_are_applied() -> None:
    session = FetchSession(1, [wanted(0), wanted(1)], uses_topic_ids=False, now_ms=0)
    changed = [FetchPartition(partition=1, fetch_offset=9), FetchPartition(partition=2)]
    session.update(FetchRequest(topics=[FetchTopic(topic="orders", partitions=changed)]))
    assert {index: each.fetch_offset for (_, index), each in session.wanted.items()} == {0: 0, 1: 9, 2: 0}
