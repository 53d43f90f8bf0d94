"""Records of committed offsets, which `__consumer_offsets` holds for every kind of group.

One class per key and value for all its versions; `formats` says which belong together. Written by hand; the
package says why.
"""

from uuid import UUID

from riverlog.wire.schema import NOT_FLEXIBLE, Field, Message


class OffsetCommitKey(Message):
    __slots__ = (
        "group",
        "partition",
        "topic",
    )
    VERSIONS = (0, 0)
    FLEXIBLE = NOT_FLEXIBLE
    FIELDS = (
        Field("group", "string", (0, 0), default=""),
        Field("topic", "string", (0, 0), default=""),
        Field("partition", "int32", (0, 0)),
    )

    def __init__(
        self,
        *,
        group: str = "",
        topic: str = "",
        partition: int = 0,
    ) -> None:
        self.group = group
        self.topic = topic
        self.partition = partition


class OffsetCommitValue(Message):
    __slots__ = (
        "commit_timestamp_ms",
        "expire_timestamp_ms",
        "leader_epoch",
        "metadata",
        "offset",
        "topic_id",
    )
    VERSIONS = (0, 4)
    FLEXIBLE = 4
    FIELDS = (
        Field("offset", "int64", (0, 4)),
        Field("leader_epoch", "int32", (3, 4), default=-1),
        Field("metadata", "string", (0, 4), default=""),
        Field("commit_timestamp_ms", "int64", (0, 4)),
        Field("expire_timestamp_ms", "int64", (1, 1), default=-1),
        Field("topic_id", "uuid", (4, 4), tag=0, tagged=(4, 4), default=None),
    )

    def __init__(
        self,
        *,
        offset: int = 0,
        leader_epoch: int = -1,
        metadata: str = "",
        commit_timestamp_ms: int = 0,
        expire_timestamp_ms: int = -1,
        topic_id: UUID | None = None,
    ) -> None:
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.metadata = metadata
        self.commit_timestamp_ms = commit_timestamp_ms
        self.expire_timestamp_ms = expire_timestamp_ms
        self.topic_id = topic_id
