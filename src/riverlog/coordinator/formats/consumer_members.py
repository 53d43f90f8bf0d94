"""Records of the members of groups under the consumer protocol (KIP-848).

One class per key and value for all its versions; `formats` says which belong together. Written by hand; the
package says why.
"""

from riverlog.wire.schema import DEFAULT, NOT_FLEXIBLE, Field, Message


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
