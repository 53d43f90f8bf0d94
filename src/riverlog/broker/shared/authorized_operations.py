"""What a client may do with a topic, a group or the cluster, as bits: everything, without an authorizer."""

from typing import Final

from riverlog.model.rights import AclOperation

_CONFIGS = (AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS)


def _bits(*operations: AclOperation) -> int:
    return sum(1 << operation for operation in operations)


NOT_ASKED: Final = -(2**31)
ON_TOPIC: Final = _bits(
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.CREATE,
    AclOperation.DELETE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE,
    *_CONFIGS,
)
ON_CLUSTER: Final = _bits(
    AclOperation.CREATE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE,
    AclOperation.CLUSTER_ACTION,
    AclOperation.IDEMPOTENT_WRITE,
    *_CONFIGS,
)
ON_GROUP: Final = _bits(AclOperation.READ, AclOperation.DELETE, AclOperation.DESCRIBE, *_CONFIGS)
