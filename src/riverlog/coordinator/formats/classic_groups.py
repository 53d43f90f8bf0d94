"""Records of groups under the classic protocol.

One class per key and value for all its versions; `formats` says which belong together. Written by hand; the
package says why.
"""

from riverlog.wire.schema import DEFAULT, NOT_FLEXIBLE, Field, Message


class GroupMetadataKey(Message):
    __slots__ = ("group",)
    VERSIONS = (0, 0)
    FLEXIBLE = NOT_FLEXIBLE
    FIELDS = (Field("group", "string", (0, 0), default=""),)

    def __init__(
        self,
        *,
        group: str = "",
    ) -> None:
        self.group = group


class GroupMetadataMember(Message):
    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "group_instance_id",
        "member_id",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "subscription",
    )
    VERSIONS = (0, 4)
    FLEXIBLE = 4
    FIELDS = (
        Field("member_id", "string", (0, 4), default=""),
        Field("group_instance_id", "string", (3, 4), nullable=(3, 4), default=None),
        Field("client_id", "string", (0, 4), default=""),
        Field("client_host", "string", (0, 4), default=""),
        Field("rebalance_timeout_ms", "int32", (1, 4), default=-1),
        Field("session_timeout_ms", "int32", (0, 4)),
        Field("subscription", "bytes", (0, 4), default=b""),
        Field("assignment", "bytes", (0, 4), default=b""),
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        rebalance_timeout_ms: int = -1,
        session_timeout_ms: int = 0,
        subscription: bytes = b"",
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.subscription = subscription
        self.assignment = assignment


class GroupMetadataValue(Message):
    __slots__ = (
        "current_state_timestamp_ms",
        "generation",
        "leader",
        "members",
        "protocol",
        "protocol_type",
    )
    VERSIONS = (0, 4)
    FLEXIBLE = 4
    FIELDS = (
        Field("protocol_type", "string", (0, 4), default=""),
        Field("generation", "int32", (0, 4)),
        Field("protocol", "string", (0, 4), nullable=(0, 4), default=None),
        Field("leader", "string", (0, 4), nullable=(0, 4), default=None),
        Field("current_state_timestamp_ms", "int64", (2, 4), default=-1),
        Field("members", "struct", (0, 4), array=True, struct=GroupMetadataMember, default=DEFAULT),
    )

    def __init__(
        self,
        *,
        protocol_type: str = "",
        generation: int = 0,
        protocol: str | None = None,
        leader: str | None = None,
        current_state_timestamp_ms: int = -1,
        members: list[GroupMetadataMember] = DEFAULT,
    ) -> None:
        self.protocol_type = protocol_type
        self.generation = generation
        self.protocol = protocol
        self.leader = leader
        self.current_state_timestamp_ms = current_state_timestamp_ms
        self.members = [] if members is DEFAULT else members
