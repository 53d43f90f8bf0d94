"""A clock that a test can put forward: wall time jumps, and `advance` returns when what is due is done.

Wall time is what records are stamped with and by which they age; monotonic time, by which sessions, long
polls and idle connections are counted, goes on as always. So a test can let a week pass and no client is lost
by it. Between the jumps wall time goes on as well. Time-outs of transactions are counted on a clock of their
own, which follows only when a test says so: most tests do not want open transactions aborted.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class SettableClock:
    """The clock port. `run_what_is_due` belongs to the broker that lives by this clock."""

    def __init__(self, run_what_is_due: Callable[[], None]) -> None:
        self._run_what_is_due = run_what_is_due
        self._ahead_ms = 0
        self.for_transactions = _TransactionClock(self)

    def advance(
        self,
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        milliseconds: float = 0,
        transactions: bool = False,
    ) -> None:
        """Put the clock forward; return when everything that is due has been done.

        `transactions` says that those which run out of time by it are aborted, and unused transactional ids
        forgotten.
        """
        step = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=milliseconds)
        self._put_forward(step // timedelta(milliseconds=1), transactions)

    def advance_to(self, moment: datetime, *, transactions: bool = False) -> None:
        """The same, up to a moment, which has a time zone and is to come."""
        if moment.tzinfo is None:
            raise ValueError(f"{moment} has no time zone. Say which: datetime(..., tzinfo=UTC).")
        # Rounded up, in whole numbers: the clock counts milliseconds and must not stop short of the moment.
        moment_ms = -((_EPOCH - moment) // timedelta(milliseconds=1))
        self._put_forward(moment_ms - self.wall_ms(), transactions)

    @property
    def now(self) -> datetime:
        return _EPOCH + timedelta(milliseconds=self.wall_ms())

    @property
    def now_ms(self) -> int:
        """As timestamps of records have it."""
        return self.wall_ms()

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self._ahead_ms

    def monotonic_s(self) -> float:
        return time.monotonic()

    def __repr__(self) -> str:
        return f"<clock at {self.now.isoformat()}, {timedelta(milliseconds=self._ahead_ms)} ahead>"

    def _put_forward(self, step_ms: int, transactions: bool) -> None:
        if step_ms < 0:
            raise ValueError("The clock goes forward only: what it brought cannot be taken back.")
        if not transactions:
            self.for_transactions.behind_ms += step_ms
        self._ahead_ms += step_ms
        self._run_what_is_due()


class _TransactionClock:
    def __init__(self, clock: SettableClock) -> None:
        self._clock = clock
        self.behind_ms = 0

    def wall_ms(self) -> int:
        return self._clock.wall_ms() - self.behind_ms

    def monotonic_s(self) -> float:
        return self._clock.monotonic_s()
