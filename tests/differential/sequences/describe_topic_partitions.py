"""DescribeTopicPartitions: pages of partitions (KIP-966)."""

from __future__ import annotations

from typing import Any

from tests.differential.sequences.common import created, deleted
from tests.differential.steps import Call, Script, Step

Json = Any


def scripts() -> list[Script]:
    return [
        Script("DescribeTopicPartitions", "all topics", _all(), empty_broker=True),
        Script("DescribeTopicPartitions", "pages", _pages()),
    ]


def _asked(*names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> Call:
    at = None if cursor is None else {"topic_name": cursor[0], "partition_index": cursor[1]}
    topics = [{"name": name} for name in names]
    return Call(
        "DescribeTopicPartitions", 0, {"topics": topics, "response_partition_limit": limit, "cursor": at}
    )


def _all() -> list[Step]:
    return [
        _asked(),
        *created("pages-b", 2),
        *created("pages-a"),
        _asked(),
        _asked(limit=2),
        _asked(cursor=("pages-b", 1)),
        _asked(cursor=("pages-aa", 0)),
        _asked(cursor=("pages-zz", 0)),
        *deleted("pages-a", "pages-b"),
    ]


def _pages() -> list[Step]:
    first, second = "pages-1", "pages-2"
    both = (first, second)
    return [
        *created(first, 4),
        *created(second, 2),
        _asked(first),
        _asked(*both),
        _asked(second, first),
        _asked(first, first),
        _asked("pages-nowhere"),
        _asked("not/valid"),
        _asked("pages-nowhere", first),
        _asked(*both, limit=3),
        _asked(*both, limit=4),
        _asked(*both, limit=5),
        _asked(*both, limit=6),
        _asked(*both, limit=1),
        _asked(*both, limit=0),
        _asked(*both, limit=-1),
        _asked(*both, limit=2**31 - 1),
        _asked(*both, limit=2, cursor=(first, 1)),
        _asked(*both, limit=3, cursor=(first, 3)),
        _asked(*both, cursor=(first, 4)),
        _asked(*both, cursor=(first, 99)),
        _asked(*both, cursor=(first, -1)),
        _asked(*both, cursor=(second, 1)),
        _asked(first, cursor=(second, 0)),
        _asked(first, cursor=("aaa", 0)),
        _asked(first, cursor=("zzz", 0)),
        _asked("pages-nowhere", cursor=("pages-nowhere", 0)),
        _asked("pages-0nowhere", first, limit=1),
    ]
