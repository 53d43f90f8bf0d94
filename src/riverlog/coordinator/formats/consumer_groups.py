"""Records of groups under the consumer protocol (KIP-848), apart from their members and assignments.

One class per key and value for all its versions; `formats` says which belong together. Written by hand; the
package says why.
"""

from uuid import UUID

from riverlog.wire.schema import DEFAULT, NOT_FLEXIBLE, Field, Message


class ConsumerGroupMetadataKey(Message):
    __slots__ = ("group_id",)
    VERSIONS = (0, 0)
    FLEXIBLE = NOT_FLEXIBLE
    FIELDS = (Field("group_id", "string", (0, 0), default=""),)

    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None:
        self.group_id = group_id


class ConsumerGroupMetadataValue(Message):
    __slots__ = (
        "epoch",
        "metadata_hash",
    )
    VERSIONS = (0, 0)
    FLEXIBLE = 0
    FIELDS = (
        Field("epoch", "int32", (0, 0)),
        Field("metadata_hash", "int64", (0, 0), tag=0, tagged=(0, 0)),
    )

    def __init__(
        self,
        *,
        epoch: int = 0,
        metadata_hash: int = 0,
    ) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash


class ConsumerGroupPartitionMetadataKey(Message):
    __slots__ = ("group_id",)
    VERSIONS = (0, 0)
    FLEXIBLE = NOT_FLEXIBLE
    FIELDS = (Field("group_id", "string", (0, 0), default=""),)

    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None:
        self.group_id = group_id


class ConsumerGroupPartitionRacks(Message):
    __slots__ = (
        "partition",
        "racks",
    )
    VERSIONS = (0, 0)
    FLEXIBLE = 0
    FIELDS = (
        Field("partition", "int32", (0, 0)),
        Field("racks", "string", (0, 0), array=True, default=DEFAULT),
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        racks: list[str] = DEFAULT,
    ) -> None:
        self.partition = partition
        self.racks = [] if racks is DEFAULT else racks


class ConsumerGroupTopicMetadata(Message):
    __slots__ = (
        "num_partitions",
        "partition_metadata",
        "topic_id",
        "topic_name",
    )
    VERSIONS = (0, 0)
    FLEXIBLE = 0
    FIELDS = (
        Field("topic_id", "uuid", (0, 0), default=None),
        Field("topic_name", "string", (0, 0), default=""),
        Field("num_partitions", "int32", (0, 0)),
        Field(
            "partition_metadata",
            "struct",
            (0, 0),
            array=True,
            struct=ConsumerGroupPartitionRacks,
            default=DEFAULT,
        ),
    )

    def __init__(
        self,
        *,
        topic_id: UUID | None = None,
        topic_name: str = "",
        num_partitions: int = 0,
        partition_metadata: list[ConsumerGroupPartitionRacks] = DEFAULT,
    ) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
        self.num_partitions = num_partitions
        self.partition_metadata = [] if partition_metadata is DEFAULT else partition_metadata


class ConsumerGroupPartitionMetadataValue(Message):
    __slots__ = ("topics",)
    VERSIONS = (0, 0)
    FLEXIBLE = 0
    FIELDS = (
        Field("topics", "struct", (0, 0), array=True, struct=ConsumerGroupTopicMetadata, default=DEFAULT),
    )

    def __init__(
        self,
        *,
        topics: list[ConsumerGroupTopicMetadata] = DEFAULT,
    ) -> None:
        self.topics = [] if topics is DEFAULT else topics


class ConsumerGroupRegularExpressionKey(Message):
    __slots__ = (
        "group_id",
        "regular_expression",
    )
    VERSIONS = (0, 0)
    FLEXIBLE = NOT_FLEXIBLE
    FIELDS = (
        Field("group_id", "string", (0, 0), default=""),
        Field("regular_expression", "string", (0, 0), default=""),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        regular_expression: str = "",
    ) -> None:
        self.group_id = group_id
        self.regular_expression = regular_expression


class ConsumerGroupRegularExpressionValue(Message):
    __slots__ = (
        "timestamp_ms",
        "topics",
        "version",
    )
    VERSIONS = (0, 0)
    FLEXIBLE = 0
    FIELDS = (
        Field("topics", "string", (0, 0), array=True, default=DEFAULT),
        Field("version", "int64", (0, 0)),
        Field("timestamp_ms", "int64", (0, 0)),
    )

    def __init__(
        self,
        *,
        topics: list[str] = DEFAULT,
        version: int = 0,
        timestamp_ms: int = 0,
    ) -> None:
        self.topics = [] if topics is DEFAULT else topics
        self.version = version
        self.timestamp_ms = timestamp_ms
