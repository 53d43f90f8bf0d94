"""Who asks, and what a request may need: principals, and Kafka's operations on Kafka's kinds of resources.

Nothing here decides. The numbers are those of Kafka's ACLs and of the `authorized_operations` fields.
"""

from enum import IntEnum
from typing import Final, NamedTuple


class Principal(NamedTuple):
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS: Final = Principal("User", "ANONYMOUS")
"""Clients of a listener without authentication."""


class AclOperation(IntEnum):
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    TWO_PHASE_COMMIT = 15


class AclResourceType(IntEnum):
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5


class Right(NamedTuple):
    operation: AclOperation
    resource: AclResourceType


Rights = tuple[Right, ...]
"""What a request can need; which of them, and on which names, its contents decide."""

NO_RIGHTS: Final[Rights] = ()


def on_topic(*operations: AclOperation) -> Rights:
    return tuple(Right(operation, AclResourceType.TOPIC) for operation in operations)


def on_group(*operations: AclOperation) -> Rights:
    return tuple(Right(operation, AclResourceType.GROUP) for operation in operations)


def on_cluster(*operations: AclOperation) -> Rights:
    return tuple(Right(operation, AclResourceType.CLUSTER) for operation in operations)


def on_transactional_id(*operations: AclOperation) -> Rights:
    return tuple(Right(operation, AclResourceType.TRANSACTIONAL_ID) for operation in operations)
