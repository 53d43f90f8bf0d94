"""The topics in which brokers keep state of their own."""

from typing import Final

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
_SHARE_STATE_TOPIC: Final = "__share_group_state"
"""Not served; its name is reserved all the same, as by Kafka."""

INTERNAL_TOPICS: Final = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC, _SHARE_STATE_TOPIC})
