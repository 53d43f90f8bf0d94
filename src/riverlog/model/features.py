"""Features whose level a cluster can choose (`kafka-features`): which there are, and where they begin.

Of Kafka's those are here that exist here; the others belong to KRaft. A level of 0 is the same as none.
"""

from collections.abc import Mapping
from typing import Final

GROUP_VERSION: Final = "group.version"
"""1: groups of the consumer protocol are served (KIP-848)."""
TRANSACTION_VERSION: Final = "transaction.version"
"""2: clients count on an epoch for each transaction (KIP-890). 0: the broker refuses to give them one."""

HIGHEST_LEVELS: Final[Mapping[str, int]] = {GROUP_VERSION: 1, TRANSACTION_VERSION: 2}
"""By name. They are in force in a new cluster."""
