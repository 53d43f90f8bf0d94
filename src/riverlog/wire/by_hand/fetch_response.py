"""The reply to a fetch of one partition with records, packed in one go around them, and no word else.

Records are not copied: they stand in the list of parts as the slice of a file that they are.
"""

import struct
from typing import Final

from riverlog.model.disk import FileSlice
from riverlog.wire.by_hand.fetch_request import NAMED_SINGLE_VERSION, SingleFetch
from riverlog.wire.primitives import classic_text, id_bytes, varint
from riverlog.wire.schema import RecordData

FetchRow = tuple[int, int, int, int]
"""Of a partition: index, high watermark, last stable offset, log start offset."""

_BY_ID: Final = struct.Struct(">iiBihiB16sBihqqqBi")
_NAMED_HEAD: Final = struct.Struct(">iiihii")
_NAMED_ROW: Final = struct.Struct(">iihqqqiii")
_NO_TAGS: Final = b"\0\0\0"  # Of partition, topic and reply.
_BY_ID_BYTES: Final = _BY_ID.size - 4 + len(_NO_TAGS)
_NAMED_BYTES: Final = _NAMED_HEAD.size - 4 + _NAMED_ROW.size
_by_id: Final = _BY_ID.pack
_named_head: Final = _NAMED_HEAD.pack
_named_row: Final = _NAMED_ROW.pack


def encode_single_fetch(
    version: int,
    correlation_id: int,
    request: SingleFetch,
    row: FetchRow,
    records: FileSlice,
    session_id: int,
) -> list[RecordData]:
    """A whole frame, size included, when no transactions among the records were aborted.

    Which of them were is asked by a reader of committed records only; to others, null is said.
    """
    index, high_watermark, last_stable_offset, log_start_offset = row
    length = records.length
    if version == NAMED_SINGLE_VERSION:
        name = classic_text(request.topic)
        head = _named_head(len(name) + _NAMED_BYTES + length, correlation_id, 0, 0, session_id, 1)
        aborted = 0 if request.isolation_level else -1
        answer = _named_row(
            1, index, 0, high_watermark, last_stable_offset, log_start_offset, aborted, -1, length
        )
        return [b"".join((head, name, answer)), records]
    count = varint(length + 1)
    head = _by_id(
        _BY_ID_BYTES + len(count) + length, correlation_id, 0, 0, 0, session_id, 2,
        id_bytes(request.topic_id), 2, index, 0, high_watermark, last_stable_offset, log_start_offset,
        1 if request.isolation_level else 0, -1,
    )  # fmt: skip
    return [head + count, records, _NO_TAGS]
