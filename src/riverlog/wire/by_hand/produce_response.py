"""The reply to one batch, packed in one go, when there is no more to say than its numbers.

From the first version on in which a request has the short form. Messages, errors of single records and other
leaders are for the tables to say.
"""

import struct
from typing import Final

from riverlog.wire.apis import TOPIC_ID_VERSION_MIN
from riverlog.wire.by_hand.produce_request import FLEXIBLE_VERSION_MIN, SingleBatch
from riverlog.wire.primitives import classic_text, compact_text, id_bytes

ProduceRow = tuple[int, int, int, int, int]
"""Of a partition: index, error code, base offset, append time (ms), log start offset."""

# After the log start offset: no record errors; then a zero each for message, tags of partition and of topic;
# throttle time and a zero for the tags of the reply.
_ROW: Final = "BihqqqBHxiB"
_BY_ID: Final = struct.Struct(f">iiBB16s{_ROW}")
_NAMED_HEAD: Final = struct.Struct(">iiBB")
_NAMED_ROW: Final = struct.Struct(f">{_ROW}")
_CLASSIC_HEAD: Final = struct.Struct(">iii")
_CLASSIC_ROW: Final = struct.Struct(">iihqqqihi")
_BY_ID_BYTES: Final = _BY_ID.size - 4
_NAMED_BYTES: Final = _NAMED_HEAD.size + _NAMED_ROW.size - 4
_CLASSIC_BYTES: Final = _CLASSIC_HEAD.size + _CLASSIC_ROW.size - 4
_by_id: Final = _BY_ID.pack
_named_head: Final = _NAMED_HEAD.pack
_named_row: Final = _NAMED_ROW.pack
_classic_head: Final = _CLASSIC_HEAD.pack
_classic_row: Final = _CLASSIC_ROW.pack


def encode_single_produce(version: int, correlation_id: int, request: SingleBatch, row: ProduceRow) -> bytes:
    """A whole frame, size included."""
    if version >= TOPIC_ID_VERSION_MIN:
        topic_id = id_bytes(request.topic_id)
        return _by_id(_BY_ID_BYTES, correlation_id, 0, 2, topic_id, 2, *row, 1, 0, 0, 0)
    if version >= FLEXIBLE_VERSION_MIN:
        name = compact_text(request.name)
        head = _named_head(len(name) + _NAMED_BYTES, correlation_id, 0, 2)
        return b"".join((head, name, _named_row(2, *row, 1, 0, 0, 0)))
    name = classic_text(request.name)
    head = _classic_head(len(name) + _CLASSIC_BYTES, correlation_id, 1)
    return b"".join((head, name, _classic_row(1, *row, 0, -1, 0)))
