"""The reply to a fetch of a follower: any number of partitions, most of them with records or nothing else to
tell than where the high watermark and the log start are.

The versions since 15, which name the follower's registration, are the same in this. Records are not copied.
Aborted transactions, the last stable offset and other leaders are for consumers: a follower finds the first
two in the records and the third in the metadata.
"""

import struct
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple
from uuid import UUID

from riverlog.model.disk import FileSlice
from riverlog.wire.primitives import id_bytes, varint
from riverlog.wire.schema import RecordData

REPLICA_VERSION_MIN: Final = 15


class ReplicaRow(NamedTuple):
    """What a follower is told of one partition; -1 for what it is not told."""

    topic_id: UUID | None
    partition: int
    error_code: int = 0
    high_watermark: int = -1
    log_start_offset: int = -1
    records: FileSlice | None = None
    diverging: tuple[int, int] | None = None
    """The epoch up to which the logs agree at most, and where it ends here."""


_HEAD: Final = struct.Struct(">iiBihi")  # Size, correlation id, no tags, throttle time, error, session.
_ROW: Final = struct.Struct(">ihqqqBi")  # Index, error, offsets; no aborted transactions; no other replica.
_DIVERGING: Final = struct.Struct(">BBBiqB")  # One tagged field, its tag and size; epoch, offset; no tags.
_head: Final = _HEAD.pack
_row: Final = _ROW.pack
_NO_RECORDS: Final = b"\x01"
_NO_TAGS: Final = b"\0"
_DIVERGING_BYTES: Final = 13
_topic_id: Final = itemgetter(0)


def encode_replica_fetch(
    correlation_id: int, session_id: int, rows: Sequence[ReplicaRow]
) -> list[RecordData]:
    """A whole frame, size included. Rows of one topic that stand together are told together."""
    topics = [(topic_id, list(of_topic)) for topic_id, of_topic in groupby(rows, _topic_id)]
    out: list[bytes] = [b"", varint(len(topics) + 1)]
    parts: list[RecordData] = []
    from_files = 0
    for topic_id, of_topic in topics:
        out += (id_bytes(topic_id), varint(len(of_topic) + 1))
        for _, index, error_code, high_watermark, log_start_offset, records, diverging in of_topic:
            out.append(_row(index, error_code, high_watermark, -1, log_start_offset, 0, -1))
            if records is None:
                out.append(_NO_RECORDS)
            else:
                out.append(varint(records.length + 1))
                parts += (b"".join(out), records)
                from_files += records.length
                out = []
            out.append(
                _NO_TAGS if diverging is None else _DIVERGING.pack(1, 0, _DIVERGING_BYTES, *diverging, 0)
            )
        out.append(_NO_TAGS)
    out.append(_NO_TAGS)
    parts.append(b"".join(out))
    size = _HEAD.size - 4 + from_files + sum(len(part) for part in parts if type(part) is bytes)
    parts[0] = _head(size, correlation_id, 0, 0, 0, session_id) + parts[0]  # type: ignore[operator]
    return parts
