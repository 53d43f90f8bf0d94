"""Asking a leader where its logs start and end, for partitions that ended outside of them. Pure.

Two requests, since a partition may be named once in each. The topic is named there, not identified; the
leader epoch keeps a topic that was made anew under the name from being taken for it, and so does the fetch
that comes next.
"""

from collections.abc import Iterator
from typing import Final

from riverlog.model.ids import NodeId
from riverlog.replication.following.followed import Followed
from riverlog.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

EARLIEST: Final = -2
LATEST: Final = -1


class RangeQuestion:
    def __init__(self, asked: list[Followed], node_id: NodeId) -> None:
        self._asked = asked
        self._node_id = node_id
        self._found: dict[int, dict[tuple[str, int], int]] = {}

    @property
    def is_answered(self) -> bool:
        return len(self._found) == len((EARLIEST, LATEST))

    def request(self, timestamp: int) -> ListOffsetsRequest:
        topics: dict[str, ListOffsetsTopic] = {}
        for each in self._asked:
            topic = topics.setdefault(each.topic, ListOffsetsTopic(name=each.topic))
            topic.partitions.append(
                ListOffsetsPartition(
                    partition_index=each.index, current_leader_epoch=each.leader_epoch, timestamp=timestamp
                )
            )
        return ListOffsetsRequest(replica_id=self._node_id, topics=list(topics.values()))

    def take(self, timestamp: int, response: ListOffsetsResponse) -> None:
        self._found[timestamp] = {
            (topic.name, each.partition_index): each.offset
            for topic in response.topics
            for each in topic.partitions
            if not each.error_code and each.offset >= 0
        }

    def ranges(self) -> Iterator[tuple[Followed, tuple[int, int] | None]]:
        """First and end offset of the leader's log of each; None where it did not tell them."""
        for each in self._asked:
            place = each.topic, each.index
            start, end = self._found[EARLIEST].get(place), self._found[LATEST].get(place)
            yield each, None if start is None or end is None else (start, end)
