"""Records of who shall have and who has which partition in a group under the consumer protocol (KIP-848).

One class per key and value for all its versions; `formats` says which belong together. Written by hand; the
package says why.
"""

from uuid import UUID

from riverlog.wire.schema import DEFAULT, NOT_FLEXIBLE, Field, Message


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
