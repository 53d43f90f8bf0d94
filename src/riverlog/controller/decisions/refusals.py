"""What the decisions have in common: how they refuse, and the limits of one request."""

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from riverlog.model.errors import ErrorCode

PARTITIONS_PER_REQUEST_MAX: Final = 10_000
"""More in one CreateTopics request is against Kafka's policy, whatever else the request says."""

RECORDS_PER_REQUEST_MAX: Final = 10_000
"""Kafka's controller writes one record for each topic, config and partition, and no more than this at once.

We write no such records, but refuse the same requests.
"""


class Refusal(NamedTuple):
    """Why something is not done. The message is for a person; some answers of Kafka have none."""

    error: ErrorCode
    message: str | None


NOT_CONTROLLER: Final = Refusal(ErrorCode.NOT_CONTROLLER, "This broker is not the controller.")
DUPLICATE_NAME: Final = Refusal(ErrorCode.INVALID_REQUEST, "The same topic name occurs more than once.")


def repeated(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name for name, count in Counter(names).items() if count > 1)
