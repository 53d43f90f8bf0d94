"""What a topic demands of a batch, and the two possible answers. Values only; `validate` decides."""

from dataclasses import dataclass, field
from typing import NamedTuple

from riverlog.model.config.log_config import TimestampType
from riverlog.model.errors import ErrorCode
from riverlog.records.batch import BatchHeader
from riverlog.records.compression import Codec

NO_TIMESTAMP_MS = -1
_LONGEST_MS = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class BatchRules:
    """What one topic demands of a batch; the defaults are Kafka's. `codec` None is the producer's."""

    max_batch_bytes: int = 1_048_588
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    timestamp_before_max_ms: int = _LONGEST_MS
    timestamp_after_max_ms: int = 3_600_000
    compacted: bool = False
    codec: Codec | None = None
    compression_level: int | None = None
    validate_records: bool = False
    decompressed_limit_bytes: int = 100 * 1024 * 1024
    asks_for_header_only: bool = field(init=False)
    """Nothing is demanded that the header of an ordinary batch cannot show."""

    def __post_init__(self) -> None:
        plain = not (
            self.compacted
            or self.validate_records
            or self.codec is not None
            or self.bounds_old_timestamps
            or self.timestamp_type is TimestampType.LOG_APPEND_TIME
        )
        object.__setattr__(self, "asks_for_header_only", plain)

    @property
    def bounds_old_timestamps(self) -> bool:
        return self.timestamp_before_max_ms < _LONGEST_MS

    def timestamp_fault(self, timestamp_ms: int, now_ms: int) -> str | None:
        """Why a create time is out of bounds at `now_ms`, or None."""
        if timestamp_ms == NO_TIMESTAMP_MS:
            return None
        if now_ms - timestamp_ms > self.timestamp_before_max_ms:
            return f"timestamp {timestamp_ms} is more than {self.timestamp_before_max_ms} ms before {now_ms}"
        if timestamp_ms - now_ms > self.timestamp_after_max_ms:
            return f"timestamp {timestamp_ms} is more than {self.timestamp_after_max_ms} ms after {now_ms}"
        return None


class Accepted(NamedTuple):
    """Batches that may be appended. `data` is the very buffer that came in, unless it was recompressed."""

    data: memoryview
    batches: tuple[tuple[int, BatchHeader], ...]
    record_count: int
    max_timestamp_ms: int


class Rejected(NamedTuple):
    """Why not: the code for the partition, and for single records their index and message."""

    error: ErrorCode
    message: str
    record_errors: tuple[tuple[int, str], ...] = ()
    tell_client: bool = False

    @property
    def reply_message(self) -> str | None:
        """The message for the reply. Like Kafka's, most replies carry the code alone; the rest we log."""
        return self.message if self.record_errors or self.tell_client else None
