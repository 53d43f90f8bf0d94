"""The table of APIs: keys, version ranges as Apache Kafka 4.3.1 advertises them, header versions.

Which of them this broker serves is decided by the route list above, not here. Importing this module loads no
message: `Api.request` and `Api.response` load theirs on first use. Only what is served or used otherwise has
messages; `scripts/generate_messages.py` has the list.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Final

from riverlog.wire.schema import NOT_FLEXIBLE, Message


class ApiKey(IntEnum):
    """Every API of Kafka 4.3.1, also those that only controllers and brokers use among themselves."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    VOTE = 52
    BEGIN_QUORUM_EPOCH = 53
    END_QUORUM_EPOCH = 54
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    FETCH_SNAPSHOT = 59
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    CONTROLLER_REGISTRATION = 70
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    ASSIGN_REPLICAS_TO_DIRS = 73
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    UPDATE_RAFT_VOTER = 82
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92


@dataclass(frozen=True, slots=True)  # Read at every request: slots are quicker than a tuple's names.
class Api:
    """One API, as a client sees it advertised.

    `min_version` may be lower than the oldest version that has a message: Produce 0 to 2 are advertised for
    the sake of old librdkafka, and the connection is closed when they are used.
    """

    key: ApiKey
    name: str
    min_version: int
    max_version: int
    flexible_version: int

    @property
    def request(self) -> type[Message]:
        return message_class(self.key, "Request")

    @property
    def response(self) -> type[Message]:
        return message_class(self.key, "Response")

    def request_header_version(self, version: int) -> int:
        return 2 if version >= self.flexible_version else 1

    def response_header_version(self, version: int) -> int:
        """Always 0 for ApiVersions: a client that asks does not know yet what we speak (KIP-511)."""
        return 1 if version >= self.flexible_version and self.key is not ApiKey.API_VERSIONS else 0


TOPIC_ID_VERSION_MIN: Final = 13
"""From this version on, requests and responses of Produce and of Fetch name a topic by its id (KIP-516)."""


@cache
def message_class(key: ApiKey, suffix: str) -> type[Message]:
    """The message class of an API; `suffix` is "Request" or "Response"."""
    snake = key.name.lower()
    module = import_module(f"riverlog.wire.messages.{snake}")
    cls: type[Message] = getattr(module, snake.title().replace("_", "") + suffix)
    return cls


_VERSIONS: Final = {
    ApiKey.PRODUCE: (0, 13, 9),
    ApiKey.FETCH: (4, 18, 12),
    ApiKey.LIST_OFFSETS: (1, 11, 6),
    ApiKey.METADATA: (0, 13, 9),
    ApiKey.OFFSET_COMMIT: (2, 10, 8),
    ApiKey.OFFSET_FETCH: (1, 10, 6),
    ApiKey.FIND_COORDINATOR: (0, 6, 3),
    ApiKey.JOIN_GROUP: (0, 9, 6),
    ApiKey.HEARTBEAT: (0, 4, 4),
    ApiKey.LEAVE_GROUP: (0, 5, 4),
    ApiKey.SYNC_GROUP: (0, 5, 4),
    ApiKey.DESCRIBE_GROUPS: (0, 6, 5),
    ApiKey.LIST_GROUPS: (0, 5, 3),
    ApiKey.SASL_HANDSHAKE: (0, 1, NOT_FLEXIBLE),
    ApiKey.API_VERSIONS: (0, 4, 3),
    ApiKey.CREATE_TOPICS: (2, 7, 5),
    ApiKey.DELETE_TOPICS: (1, 6, 4),
    ApiKey.DELETE_RECORDS: (0, 2, 2),
    # Version 6 is KIP-939, which Apache Kafka 4.3 keeps back; clients take the newest that both sides know.
    ApiKey.INIT_PRODUCER_ID: (0, 6, 2),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (2, 4, 4),
    ApiKey.ADD_PARTITIONS_TO_TXN: (0, 5, 3),
    ApiKey.ADD_OFFSETS_TO_TXN: (0, 4, 3),
    ApiKey.END_TXN: (0, 5, 3),
    ApiKey.WRITE_TXN_MARKERS: (1, 2, 1),
    ApiKey.TXN_OFFSET_COMMIT: (0, 5, 3),
    ApiKey.DESCRIBE_ACLS: (1, 3, 2),
    ApiKey.CREATE_ACLS: (1, 3, 2),
    ApiKey.DELETE_ACLS: (1, 3, 2),
    ApiKey.DESCRIBE_CONFIGS: (1, 4, 4),
    ApiKey.ALTER_CONFIGS: (0, 2, 2),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (1, 2, 2),
    ApiKey.DESCRIBE_LOG_DIRS: (1, 5, 2),
    ApiKey.SASL_AUTHENTICATE: (0, 2, 2),
    ApiKey.CREATE_PARTITIONS: (0, 3, 2),
    ApiKey.CREATE_DELEGATION_TOKEN: (1, 3, 2),
    ApiKey.RENEW_DELEGATION_TOKEN: (1, 2, 2),
    ApiKey.EXPIRE_DELEGATION_TOKEN: (1, 2, 2),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: (1, 3, 2),
    ApiKey.DELETE_GROUPS: (0, 2, 2),
    ApiKey.ELECT_LEADERS: (0, 2, 2),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (0, 1, 1),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (0, 1, 0),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (0, 0, 0),
    ApiKey.OFFSET_DELETE: (0, 0, NOT_FLEXIBLE),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (0, 1, 1),
    ApiKey.ALTER_CLIENT_QUOTAS: (0, 1, 1),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (0, 0, 0),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (0, 0, 0),
    ApiKey.DESCRIBE_QUORUM: (0, 2, 0),
    # Of brokers among themselves; advertised to nobody, as Kafka advertises it to nobody but its brokers.
    ApiKey.ENVELOPE: (0, 0, 0),
    ApiKey.UPDATE_FEATURES: (0, 2, 0),
    ApiKey.DESCRIBE_CLUSTER: (0, 2, 0),
    ApiKey.DESCRIBE_PRODUCERS: (0, 0, 0),
    ApiKey.UNREGISTER_BROKER: (0, 0, 0),
    ApiKey.DESCRIBE_TRANSACTIONS: (0, 0, 0),
    ApiKey.LIST_TRANSACTIONS: (0, 2, 0),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: (0, 1, 0),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (0, 1, 0),
    ApiKey.LIST_CONFIG_RESOURCES: (0, 1, 0),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (0, 0, 0),
    ApiKey.SHARE_GROUP_HEARTBEAT: (1, 1, 1),
    ApiKey.SHARE_GROUP_DESCRIBE: (1, 1, 1),
    ApiKey.SHARE_FETCH: (1, 2, 1),
    ApiKey.SHARE_ACKNOWLEDGE: (1, 2, 1),
    ApiKey.ADD_RAFT_VOTER: (0, 1, 0),
    ApiKey.REMOVE_RAFT_VOTER: (0, 0, 0),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: (0, 0, 0),
    ApiKey.READ_SHARE_GROUP_STATE: (0, 0, 0),
    ApiKey.WRITE_SHARE_GROUP_STATE: (0, 1, 0),
    ApiKey.DELETE_SHARE_GROUP_STATE: (0, 0, 0),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: (0, 1, 0),
    ApiKey.STREAMS_GROUP_HEARTBEAT: (0, 0, 0),
    ApiKey.STREAMS_GROUP_DESCRIBE: (0, 0, 0),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: (0, 1, 0),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: (0, 0, 0),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: (0, 0, 0),
}
"""First and last advertised version, and the first flexible one (KIP-482)."""

APIS: Final[Mapping[ApiKey, Api]] = MappingProxyType(
    {key: Api(key, key.name.title().replace("_", ""), *versions) for key, versions in _VERSIONS.items()}
)

_BY_NAME: Final = {api.name: api for api in APIS.values()}


def api_of(request: type[Message]) -> Api:
    """The API that a request class belongs to."""
    return _BY_NAME[request.__name__.removesuffix("Request")]
