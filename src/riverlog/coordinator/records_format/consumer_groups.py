"""Records of groups under the consumer protocol (KIP-848).

One class per key and value for all its versions; `records_format` says which belong together.
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


class ConsumerGroupMemberMetadataKey(Message):
    __slots__ = (
        "group_id",
        "member_id",
    )
    VERSIONS = (0, 0)
    FLEXIBLE = NOT_FLEXIBLE
    FIELDS = (
        Field("group_id", "string", (0, 0), default=""),
        Field("member_id", "string", (0, 0), default=""),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id


class ClassicMemberProtocol(Message):
    __slots__ = (
        "metadata",
        "name",
    )
    VERSIONS = (0, 0)
    FLEXIBLE = 0
    FIELDS = (
        Field("name", "string", (0, 0), default=""),
        Field("metadata", "bytes", (0, 0), default=b""),
    )

    def __init__(
        self,
        *,
        name: str = "",
        metadata: bytes = b"",
    ) -> None:
        self.name = name
        self.metadata = metadata


class ClassicMemberMetadata(Message):
    __slots__ = (
        "session_timeout_ms",
        "supported_protocols",
    )
    VERSIONS = (0, 0)
    FLEXIBLE = 0
    FIELDS = (
        Field("session_timeout_ms", "int32", (0, 0)),
        Field(
            "supported_protocols", "struct", (0, 0), array=True, struct=ClassicMemberProtocol, default=DEFAULT
        ),
    )

    def __init__(
        self,
        *,
        session_timeout_ms: int = 0,
        supported_protocols: list[ClassicMemberProtocol] = DEFAULT,
    ) -> None:
        self.session_timeout_ms = session_timeout_ms
        self.supported_protocols = [] if supported_protocols is DEFAULT else supported_protocols


class ConsumerGroupMemberMetadataValue(Message):
    __slots__ = (
        "classic_member_metadata",
        "client_host",
        "client_id",
        "instance_id",
        "rack_id",
        "rebalance_timeout_ms",
        "server_assignor",
        "subscribed_topic_names",
        "subscribed_topic_regex",
    )
    VERSIONS = (0, 0)
    FLEXIBLE = 0
    FIELDS = (
        Field("instance_id", "string", (0, 0), nullable=(0, 0), default=None),
        Field("rack_id", "string", (0, 0), nullable=(0, 0), default=None),
        Field("client_id", "string", (0, 0), default=""),
        Field("client_host", "string", (0, 0), default=""),
        Field("subscribed_topic_names", "string", (0, 0), array=True, default=DEFAULT),
        Field("subscribed_topic_regex", "string", (0, 0), nullable=(0, 0), default=None),
        Field("rebalance_timeout_ms", "int32", (0, 0), default=-1),
        Field("server_assignor", "string", (0, 0), nullable=(0, 0), default=None),
        Field(
            "classic_member_metadata",
            "struct",
            (0, 0),
            nullable=(0, 0),
            tag=0,
            tagged=(0, 0),
            struct=ClassicMemberMetadata,
            default=DEFAULT,
        ),
    )

    def __init__(
        self,
        *,
        instance_id: str | None = None,
        rack_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] = DEFAULT,
        subscribed_topic_regex: str | None = None,
        rebalance_timeout_ms: int = -1,
        server_assignor: str | None = None,
        classic_member_metadata: ClassicMemberMetadata | None = None,
    ) -> None:
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = [] if subscribed_topic_names is DEFAULT else subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.server_assignor = server_assignor
        self.classic_member_metadata = classic_member_metadata


class ConsumerGroupTargetAssignmentMetadataKey(Message):
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


class ConsumerGroupTargetAssignmentMetadataValue(Message):
    __slots__ = (
        "assignment_epoch",
        "assignment_timestamp_ms",
    )
    VERSIONS = (0, 0)
    FLEXIBLE = 0
    FIELDS = (
        Field("assignment_epoch", "int32", (0, 0)),
        Field("assignment_timestamp_ms", "int64", (0, 0), tag=0, tagged=(0, 0)),
    )

    def __init__(
        self,
        *,
        assignment_epoch: int = 0,
        assignment_timestamp_ms: int = 0,
    ) -> None:
        self.assignment_epoch = assignment_epoch
        self.assignment_timestamp_ms = assignment_timestamp_ms


class ConsumerGroupTargetAssignmentMemberKey(Message):
    __slots__ = (
        "group_id",
        "member_id",
    )
    VERSIONS = (0, 0)
    FLEXIBLE = NOT_FLEXIBLE
    FIELDS = (
        Field("group_id", "string", (0, 0), default=""),
        Field("member_id", "string", (0, 0), default=""),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id


class TargetTopicPartitions(Message):
    __slots__ = (
        "partitions",
        "topic_id",
    )
    VERSIONS = (0, 0)
    FLEXIBLE = 0
    FIELDS = (
        Field("topic_id", "uuid", (0, 0), default=None),
        Field("partitions", "int32", (0, 0), array=True, default=DEFAULT),
    )

    def __init__(
        self,
        *,
        topic_id: UUID | None = None,
        partitions: list[int] = DEFAULT,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is DEFAULT else partitions


class ConsumerGroupTargetAssignmentMemberValue(Message):
    __slots__ = ("topic_partitions",)
    VERSIONS = (0, 0)
    FLEXIBLE = 0
    FIELDS = (
        Field(
            "topic_partitions", "struct", (0, 0), array=True, struct=TargetTopicPartitions, default=DEFAULT
        ),
    )

    def __init__(
        self,
        *,
        topic_partitions: list[TargetTopicPartitions] = DEFAULT,
    ) -> None:
        self.topic_partitions = [] if topic_partitions is DEFAULT else topic_partitions


class ConsumerGroupCurrentMemberAssignmentKey(Message):
    __slots__ = (
        "group_id",
        "member_id",
    )
    VERSIONS = (0, 0)
    FLEXIBLE = NOT_FLEXIBLE
    FIELDS = (
        Field("group_id", "string", (0, 0), default=""),
        Field("member_id", "string", (0, 0), default=""),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id


class CurrentTopicPartitions(Message):
    __slots__ = (
        "assignment_epochs",
        "partitions",
        "topic_id",
    )
    VERSIONS = (0, 0)
    FLEXIBLE = 0
    FIELDS = (
        Field("topic_id", "uuid", (0, 0), default=None),
        Field("partitions", "int32", (0, 0), array=True, default=DEFAULT),
        Field(
            "assignment_epochs",
            "int32",
            (0, 0),
            nullable=(0, 0),
            tag=0,
            tagged=(0, 0),
            array=True,
            default=None,
        ),
    )

    def __init__(
        self,
        *,
        topic_id: UUID | None = None,
        partitions: list[int] = DEFAULT,
        assignment_epochs: list[int] | None = None,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is DEFAULT else partitions
        self.assignment_epochs = assignment_epochs


class ConsumerGroupCurrentMemberAssignmentValue(Message):
    __slots__ = (
        "assigned_partitions",
        "member_epoch",
        "partitions_pending_revocation",
        "previous_member_epoch",
        "state",
    )
    VERSIONS = (0, 0)
    FLEXIBLE = 0
    FIELDS = (
        Field("member_epoch", "int32", (0, 0)),
        Field("previous_member_epoch", "int32", (0, 0)),
        Field("state", "int8", (0, 0)),
        Field(
            "assigned_partitions",
            "struct",
            (0, 0),
            array=True,
            struct=CurrentTopicPartitions,
            default=DEFAULT,
        ),
        Field(
            "partitions_pending_revocation",
            "struct",
            (0, 0),
            array=True,
            struct=CurrentTopicPartitions,
            default=DEFAULT,
        ),
    )

    def __init__(
        self,
        *,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: list[CurrentTopicPartitions] = DEFAULT,
        partitions_pending_revocation: list[CurrentTopicPartitions] = DEFAULT,
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.assigned_partitions = [] if assigned_partitions is DEFAULT else assigned_partitions
        self.partitions_pending_revocation = (
            [] if partitions_pending_revocation is DEFAULT else partitions_pending_revocation
        )


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
