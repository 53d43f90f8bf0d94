"""Produce requests that differ from the one before them in their records alone.

A producer that sends small batches to one partition repeats everything in front of them: API, version, client
id, topic, partition. Where those bytes are the same, so is what they mean, and only the records are cut out.
Flexible versions outside of a transaction, with records of less than 16 KB; whatever else there is, and any
doubt, is decoded as usual.
"""

import struct
from typing import Final

from riverlog.wire.framing import RequestHeader
from riverlog.wire.hot_produce_request import SingleBatch

VERSION_MIN: Final = 9
_BY_ID_VERSION_MIN: Final = 13
_key_and_correlation: Final = struct.Struct(">ii").unpack_from
_length_bytes: Final = struct.Struct(">BB").unpack_from
_no_tags: Final = struct.Struct(">HB").unpack_from
_new_tuple = tuple.__new__  # Spares every request the Python calls that NamedTuples are made by.


class RepeatedProduce:
    """What stands in front of the records of a request."""

    __slots__ = ("_api_key", "_client_id", "_constant", "_end", "_key_and_version", "_single", "_version")

    def __init__(self, frame: memoryview, header: RequestHeader, body: int, request: SingleBatch) -> None:
        """`body` is where the body begins in the frame that `header` and `request` were decoded from."""
        self._api_key, self._version, _, self._client_id = header
        self._single = request[:5]
        name_bytes = 16 if self._version >= _BY_ID_VERSION_MIN else 1 + len(request.name.encode())
        # Before the topic: transactional id, acks, time-out, count. After it: count, partition.
        self._end = body + 8 + name_bytes + 5
        self._key_and_version, _ = _key_and_correlation(frame)
        self._constant = bytes(frame[8 : self._end])

    def read(self, frame: memoryview) -> tuple[RequestHeader, SingleBatch] | None:
        """The header and the request in another frame; None if more than the records may differ."""
        size, end = len(frame), self._end
        if size < end + 4:
            return None
        key_and_version, correlation_id = _key_and_correlation(frame)
        if key_and_version != self._key_and_version or frame[8:end] != self._constant:
            return None
        low, high = _length_bytes(frame, end)
        if low < 128:
            start = end + 1
            stop = end + low
        elif 0 < high < 128:
            start = end + 2
            stop = end + 1 + (low & 0x7F | high << 7)
        else:
            return None
        if low == 0 or stop + 3 > size or _no_tags(frame, stop) != (0, 0):
            return None
        header = (self._api_key, self._version, correlation_id, self._client_id)
        return (
            _new_tuple(RequestHeader, header),
            _new_tuple(SingleBatch, (*self._single, frame[start:stop])),
        )
