"""What became of the records that were handed to the producer."""

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from riverlog.cli.connection import Connection
from riverlog.cli.failures import CommandError, ExitCode
from riverlog.cli.output import remark

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

# When nothing has been delivered and this many records failed, the rest of the input would fail as well.
HOPELESS_AFTER_FAILURES = 1000
REASONS_SHOWN = 3


@dataclass(slots=True)
class Delivery:
    """Counts of one run; `settle` is the producer's callback."""

    connection: Connection
    topic: str
    sent: int = 0
    delivered: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    first_error: "KafkaError | None" = None

    @property
    def failed(self) -> int:
        return self.reasons.total()

    @property
    def is_hopeless(self) -> bool:
        return self.delivered == 0 and self.failed >= HOPELESS_AFTER_FAILURES

    def settle(self, error: "KafkaError | None", message: "Message") -> None:
        if error is None:
            self.delivered += 1
            return
        self.reasons[error.str()] += 1
        if self.first_error is None:
            self.first_error = error

    def report(self) -> None:
        """Say how many arrived, and why others did not."""
        remark(f"{self.delivered} of {self.sent} records delivered to {self.topic}")
        if len(self.reasons) > 1:
            for reason, count in self.reasons.most_common(REASONS_SHOWN):
                remark(f"{count} failed: {reason}")

    def raise_if_failed(self) -> None:
        if self.first_error is not None:
            raise self.connection.failure(
                self.first_error, f"{self.failed} of {self.sent} records were not delivered to {self.topic}"
            )
        if unsettled := self.sent - self.delivered:
            raise CommandError(
                f"{unsettled} of {self.sent} records were still under way when time ran out",
                remedy="allow more time with --timeout",
                code=ExitCode.CONNECTION,
            )
