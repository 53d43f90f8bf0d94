"""Offsets asked of a cluster: where logs begin and end, where a time is, what a consumer group has committed.

Each question is for many partitions at once and costs one request for each broker that has to answer.
Commits are those of a simple group: no members, no generation; a group with members refuses them.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Final

from riverlog.client.cluster import MOVED, BrokerRefused, Cluster, CoordinatorKind
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.list_offsets import (
    ListOffsetsPartition,
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


def list_offsets(
    cluster: Cluster, timestamps: Mapping[TopicPartition, int], *, read_committed: bool = False
) -> dict[TopicPartition, int | None]:
    """The first offset whose record is not older, for each partition; None where there is no such record."""
    found: dict[TopicPartition, int | None] = {}
    missing = dict(timestamps)

    def attempt() -> tuple[int, TopicPartition | None]:
        worst: tuple[int, TopicPartition | None] = (ErrorCode.NONE, None)
        for partitions in _by_leader(cluster, missing).values():
            code, failed, answered = _ask_leader(cluster, partitions, missing, read_committed)
            found.update(answered)
            if code != ErrorCode.NONE and (worst[0] in MOVED or worst[0] == ErrorCode.NONE):
                worst = code, failed
        for partition in found:
            missing.pop(partition, None)
        return worst

    if missing:
        first = next(iter(missing))
        doing = f"offsets of {first}" + (f" and {len(missing) - 1} more" if len(missing) > 1 else "")
        cluster.retrying(attempt, lambda outcome: outcome[0], doing=doing)
    return found


def committed_offsets(
    cluster: Cluster, group: str, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, int]:
    """What the group has committed; partitions without a commit are left out."""
    return {at: offset for at, (offset, _) in committed(cluster, group, partitions).items()}


def committed(
    cluster: Cluster, group: str, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, tuple[int, str]]:
    """Offsets and what was noted with them."""
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
        TopicPartition(topic.name, each.partition_index): (each.committed_offset, each.metadata or "")
        for topic in reply.topics
        for each in topic.partitions
        if each.committed_offset >= 0
    }


def commit_offsets(
    cluster: Cluster,
    group: str,
    offsets: Mapping[TopicPartition, int],
    *,
    note: str = "",
    deadline_s: float | None = None,
) -> None:
    """Raises `BrokerRefused` when one of them was not taken."""
    topics = [
        OffsetCommitRequestTopic(
            name=topic,
            partitions=[
                OffsetCommitRequestPartition(
                    partition_index=index,
                    committed_offset=offsets[TopicPartition(topic, index)],
                    committed_metadata=note,
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


def _by_leader(cluster: Cluster, partitions: Collection[TopicPartition]) -> dict[int, list[TopicPartition]]:
    leaders: dict[int, list[TopicPartition]] = defaultdict(list)
    for at in partitions:
        leaders[cluster.leader(*at)].append(at)
    return leaders


def _is_new(cluster: Cluster, at: TopicPartition, code: int) -> bool:
    """A leader may hear of a new partition later than the clients do."""
    if code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return False
    return at.partition in cluster.topics([at.topic])[at.topic].partitions


def _ask_leader(
    cluster: Cluster,
    partitions: list[TopicPartition],
    timestamps: Mapping[TopicPartition, int],
    read_committed: bool,
) -> tuple[int, TopicPartition | None, dict[TopicPartition, int | None]]:
    """A code that is not 0 and its partition, if any; and the answers."""
    request = ListOffsetsRequest(
        replica_id=_REPLICA_ID_OF_CLIENTS,
        isolation_level=int(read_committed),
        timeout_ms=int(cluster.settings.request_timeout_s * 1000),
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(
                        partition_index=index, timestamp=timestamps[TopicPartition(topic, index)]
                    )
                    for index in indexes
                ],
            )
            for topic, indexes in _by_topic(partitions).items()
        ],
    )
    reply: ListOffsetsResponse = cluster.ask_leader(*partitions[0], ApiKey.LIST_OFFSETS, request)
    found: dict[TopicPartition, int | None] = {}
    failed: tuple[int, TopicPartition | None] = (ErrorCode.NONE, None)
    for topic in reply.topics:
        for each in topic.partitions:
            at = TopicPartition(topic.name, each.partition_index)
            if each.error_code == ErrorCode.NONE:
                found[at] = each.offset if each.offset >= 0 else None
            elif each.error_code in MOVED or _is_new(cluster, at, each.error_code):
                failed = ErrorCode.LEADER_NOT_AVAILABLE, at
            else:
                raise BrokerRefused(
                    f"offsets of partition {at.partition} of topic {at.topic}", each.error_code
                )
    return *failed, found
