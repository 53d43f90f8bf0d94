"""The topics in which brokers keep state of their own."""

from typing import Final

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
_SHARE_STATE_TOPIC: Final = "__share_group_state"
"""Not served; its name is reserved all the same, as by Kafka."""

_REPLICAS_MAX: Final = 3
_MIN_IN_SYNC: Final = 2

INTERNAL_TOPICS: Final = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC, _SHARE_STATE_TOPIC})


def replication_settings(brokers: int) -> dict[str, str]:
    """How internal topics are replicated among so many brokers that are started together: as by default, or
    over all of them where they are fewer. With less than three, one that is in sync must do."""
    replicas = min(_REPLICAS_MAX, brokers)
    return {
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(_MIN_IN_SYNC if replicas == _REPLICAS_MAX else 1),
    }
