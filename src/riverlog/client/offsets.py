"""Offsets asked of a cluster: where logs begin and end, where a time is, what a consumer group has committed.

Each question is for many partitions at once and costs one request for each broker that has to answer.
Commits are those of a simple group: no members, no generation; a group with members refuses them.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from riverlog.client.cluster import BrokerRefused, Cluster
from riverlog.client.core.metadata import CoordinatorKind
from riverlog.client.core.retrying import may_change
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from riverlog.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from riverlog.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)

EARLIEST: Final = -2
LATEST: Final = -1
"""In place of a timestamp. For a reader of committed records the latest is the last stable offset."""

_REPLICA_ID_OF_CLIENTS: Final = -1
_NAMED_TOPICS_COMMIT_VERSION: Final = 9
_ONE_GROUP_FETCH_VERSION: Final = 7


class CommittedOffset(NamedTuple):
    offset: int
    note: str
    """What was committed with it; Kafka calls it metadata."""


def list_offsets(
    cluster: Cluster, timestamps: Mapping[TopicPartition, int], *, read_committed: bool = False
) -> dict[TopicPartition, int | None]:
    """The first offset whose record is not older, for each partition; None where there is no such record."""
    search = _OffsetSearch(cluster, dict(timestamps), read_committed)
    if timestamps:
        first = next(iter(timestamps))
        more = f" and {len(timestamps) - 1} more" if len(timestamps) > 1 else ""
        # A partition that is missing for good was refused by `ask_leaders`; one that is new is waited for.
        cluster.retrying(search.ask_leaders, int, doing=f"offsets of {first}{more}", wait_for_topic=True)
    return search.found


def committed_offsets(
    cluster: Cluster, group: str, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, int]:
    """What the group has committed; partitions without a commit are left out."""
    return {at: found.offset for at, found in committed(cluster, group, partitions).items()}


def committed(
    cluster: Cluster, group: str, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, CommittedOffset]:
    """Offsets and what was noted with them; partitions without a commit are left out."""
    topics = [
        OffsetFetchRequestTopic(name=topic, partition_indexes=indexes)
        for topic, indexes in _by_topic(partitions).items()
    ]
    request = OffsetFetchRequest(group_id=group, topics=topics)
    reply: OffsetFetchResponse = cluster.retrying(
        lambda: cluster.ask_coordinator(
            CoordinatorKind.GROUP, group, ApiKey.OFFSET_FETCH, request, version_max=_ONE_GROUP_FETCH_VERSION
        ),
        lambda answer: int(answer.error_code),
        doing=f"offsets of consumer group {group}",
    )
    return {
        TopicPartition(topic.name, each.partition_index): CommittedOffset(
            each.committed_offset, each.metadata or ""
        )
        for topic in reply.topics
        for each in topic.partitions
        if each.committed_offset >= 0
    }


def commit_offsets(
    cluster: Cluster,
    group: str,
    offsets: Mapping[TopicPartition, int],
    *,
    notes: Mapping[TopicPartition, str] | None = None,
    deadline_s: float | None = None,
) -> None:
    """With a note for each, or for some. Raises `BrokerRefused` when one of them was not taken."""
    texts = notes or {}
    topics = [
        OffsetCommitRequestTopic(
            name=topic,
            partitions=[
                OffsetCommitRequestPartition(
                    partition_index=index,
                    committed_offset=offsets[TopicPartition(topic, index)],
                    committed_metadata=texts.get(TopicPartition(topic, index), ""),
                )
                for index in indexes
            ],
        )
        for topic, indexes in _by_topic(offsets).items()
    ]
    request = OffsetCommitRequest(group_id=group, topics=topics)
    cluster.retrying(
        lambda: cluster.ask_coordinator(
            CoordinatorKind.GROUP,
            group,
            ApiKey.OFFSET_COMMIT,
            request,
            version_max=_NAMED_TOPICS_COMMIT_VERSION,
        ),
        _first_error,
        doing=f"commit to consumer group {group}",
        deadline_s=deadline_s,
    )


def _first_error(reply: OffsetCommitResponse) -> int:
    codes = (each.error_code for topic in reply.topics for each in topic.partitions)
    return next((code for code in codes if code != ErrorCode.NONE), int(ErrorCode.NONE))


def _by_topic(partitions: Collection[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = defaultdict(list)
    for topic, index in partitions:
        topics[topic].append(index)
    return topics


@dataclass(slots=True)
class _OffsetSearch:
    """The offsets of many partitions, asked for until each has an answer."""

    cluster: Cluster
    missing: dict[TopicPartition, int]
    """Timestamps of those that have none yet."""
    read_committed: bool
    found: dict[TopicPartition, int | None] = field(default_factory=dict)

    def ask_leaders(self) -> ErrorCode:
        """Ask each leader once. The code of a partition that has to be asked for again, or NONE."""
        leaders: dict[int, list[TopicPartition]] = defaultdict(list)
        for at in self.missing:
            leaders[self.cluster.leader(*at)].append(at)
        worst = ErrorCode.NONE
        for partitions in leaders.values():
            reply: ListOffsetsResponse = self.cluster.ask_leader(
                *partitions[0], ApiKey.LIST_OFFSETS, self._request(partitions)
            )
            for topic in reply.topics:
                for each in topic.partitions:
                    code = self._learn(TopicPartition(topic.name, each.partition_index), each)
                    worst = worst if code is ErrorCode.NONE else code
        return worst

    def _learn(self, at: TopicPartition, reply: ListOffsetsPartitionResponse) -> ErrorCode:
        code = ErrorCode.of(reply.error_code)
        if code is ErrorCode.NONE:
            self.found[at] = reply.offset if reply.offset >= 0 else None
            self.missing.pop(at, None)
        elif not may_change(code) and not self._is_new(at, code):
            raise BrokerRefused(f"offsets of partition {at.partition} of topic {at.topic}", reply.error_code)
        return code

    def _is_new(self, at: TopicPartition, code: ErrorCode) -> bool:
        """A leader may hear of a new partition later than the clients do."""
        if code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return False
        return at.partition in self.cluster.topics([at.topic])[at.topic].partitions

    def _request(self, partitions: list[TopicPartition]) -> ListOffsetsRequest:
        return ListOffsetsRequest(
            replica_id=_REPLICA_ID_OF_CLIENTS,
            isolation_level=int(self.read_committed),
            timeout_ms=int(self.cluster.settings.request_timeout_s * 1000),
            topics=[
                ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        ListOffsetsPartition(
                            partition_index=index, timestamp=self.missing[TopicPartition(topic, index)]
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in _by_topic(partitions).items()
            ],
        )
