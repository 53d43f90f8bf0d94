"""What became of the records that were handed to the producer."""

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import typer

from riverlog.cli.asking.connection import Connection
from riverlog.cli.failures import CommandError, ExitCode
from riverlog.cli.printing.output import human_bytes, remark

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

# When nothing has been delivered and this many records failed, the rest of the input would fail as well.
HOPELESS_AFTER_FAILURES = 1000
REASONS_SHOWN = 3
# The client tries again after an error that may pass, until time runs out, and does not tell which it was.
_NOT_TAKEN = (
    "the broker is there and does not take them: where its log says that the disk is full, free space there "
    "or shorten the retention; otherwise allow more time with --timeout"
)


@dataclass(slots=True)
class Delivery:
    """Counts of one run; `settle` is the producer's callback."""

    connection: Connection
    topic: str
    sent: int = 0
    delivered: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    first_error: "KafkaError | None" = None
    shows_places: bool = False
    _began: float = field(default_factory=time.monotonic)
    _bytes: int = 0

    @property
    def failed(self) -> int:
        return self.reasons.total()

    @property
    def is_hopeless(self) -> bool:
        return self.delivered == 0 and self.failed >= HOPELESS_AFTER_FAILURES

    def settle(self, error: "KafkaError | None", message: "Message") -> None:
        if error is None:
            self.delivered += 1
            self._bytes += len(message.key() or b"") + len(message.value() or b"")
            if self.shows_places:
                typer.echo(f"{message.partition()} {message.offset()}")
            return
        self.reasons[error.str()] += 1
        if self.first_error is None:
            self.first_error = error

    def report(self, *, ends_otherwise: bool) -> None:
        """Say how many arrived, and why others did not; a single reason only where no error will tell it."""
        remark(f"{self.delivered} of {self.sent} records delivered to {self.topic}")
        if len(self.reasons) > 1 or ends_otherwise:
            for reason, count in self.reasons.most_common(REASONS_SHOWN):
                remark(f"{count} failed: {reason}")

    def report_statistics(self) -> None:
        seconds = max(time.monotonic() - self._began, 0.001)
        rate = f"{self.delivered / seconds:.0f} records and {human_bytes(self._bytes / seconds)} a second"
        remark(f"{human_bytes(self._bytes)} of keys and values in {seconds:.2f} s: {rate}")

    def raise_if_failed(self) -> None:
        if self.first_error is not None:
            failure = self.connection.failure(
                self.first_error, f"{self.failed} of {self.sent} records were not delivered to {self.topic}"
            )
            if self.first_error.name() == "_MSG_TIMED_OUT" and self.connection.answers():
                failure.remedy = _NOT_TAKEN
            raise failure
        if unsettled := self.sent - self.delivered:
            raise CommandError(
                f"{unsettled} of {self.sent} records were still under way when time ran out",
                remedy="allow more time with --timeout",
                code=ExitCode.CONNECTION,
            )
