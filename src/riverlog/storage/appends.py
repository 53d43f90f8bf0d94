"""Where an append comes from, and how it can end. Values only."""

from enum import Enum
from typing import NamedTuple

from riverlog.model.errors import ErrorCode
from riverlog.records.batch import BatchHeader
from riverlog.storage.producer_state import EndMarker


class PlacedBatch(NamedTuple):
    """A batch on its way into the log; `header.base_offset` is still the client's."""

    base_offset: int
    last_offset: int
    header: BatchHeader
    marker: EndMarker | None


class Origin(Enum):
    """What is checked: a client's sequences, a coordinator's epochs, of a leader's batches only the order."""

    CLIENT = "client"
    COORDINATOR = "coordinator"
    REPLICATION = "replication"


class Appended(NamedTuple):
    """The batches are in the log. `append_time_ms` is None where records carry the producer's time."""

    first_offset: int
    last_offset: int
    append_time_ms: int | None


class Duplicate(NamedTuple):
    """The batch was in the log already, at these offsets."""

    first_offset: int
    last_offset: int
    append_time_ms: int | None


class Refused(NamedTuple):
    error: ErrorCode
    message: str


AppendOutcome = Appended | Duplicate | Refused


class OffsetOutOfRange(NamedTuple):
    """The offset asked for is not in the log; these are its bounds."""

    log_start_offset: int
    log_end_offset: int
