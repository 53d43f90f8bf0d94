"""What comes of an append to a partition."""

from typing import NamedTuple

from riverlog.model.errors import ErrorCode


class AppendedRecords(NamedTuple):
    """The records stand in the log; they are acknowledged when the high watermark reaches `end_offset`."""

    first_offset: int
    end_offset: int
    append_time_ms: int | None


class AppendRefused(NamedTuple):
    error: ErrorCode
    message: str | None = None
    record_errors: tuple[tuple[int, str], ...] = ()
