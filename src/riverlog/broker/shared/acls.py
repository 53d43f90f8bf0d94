"""What the ACL calls have in common while there is no authorizer: their one answer, and what gets none."""

from typing import Final

from riverlog.broker.exchange.context import HangUp

NOT_AUTHORISING: Final = "This cluster has no authorizer, so there are no ACLs."
MALFORMED: Final = HangUp("an ACL request with an unknown element")
_UNKNOWN: Final = 0


def is_vague(*codes: int) -> bool:
    """Whether one is the code for "unknown", which Kafka takes for a malformed request."""
    return _UNKNOWN in codes
