"""Produce requests that differ from the one before them in their records alone, and their replies.

A producer that sends small batches to one partition repeats everything in front of them: API, version, client
id, topic, partition. Where those bytes are the same, so is what they mean: only the records are cut out, and
the reply is that of the request before but for three numbers. Flexible versions outside of a transaction,
with records of less than 16 KB; whatever else there is, and any doubt, is decoded as usual.
"""

import struct
from typing import Final

from riverlog.wire.framing import RequestHeader
from riverlog.wire.hot_produce_request import SingleBatch
from riverlog.wire.hot_produce_response import encode_single

VERSION_MIN: Final = 9
_BY_ID_VERSION_MIN: Final = 13
_key_and_version: Final = struct.Struct(">i").unpack_from
_no_tags: Final = struct.Struct(">HB").unpack_from
_NOTHING: Final = memoryview(b"")
_REPLY_OFFSETS_BYTES: Final = 24
_REPLY_TAIL_BYTES: Final = 9  # No record errors, no message, no tags, no throttling, no tags.


class RepeatedProduce:
    """What stands in front of the records of a request, and around the offsets of its reply."""

    __slots__ = (
        "_constant", "_constant_end", "_key_and_version", "_pack_reply", "_reply_bytes", "_reply_head",
        "_reply_tail", "_request", "_unpack", "key", "version",
    )  # fmt: skip

    def __init__(self, frame: memoryview, header: RequestHeader, body: int, request: SingleBatch) -> None:
        """`body` is where the body begins in the frame that `header` and `request` were decoded from."""
        version = self.version = header.api_version
        name_bytes = 16 if version >= _BY_ID_VERSION_MIN else 1 + len(request.name.encode())
        # Before the topic: transactional id, acks, time-out, count. After it: count, partition.
        end = self._constant_end = body + 8 + name_bytes + 5
        (self._key_and_version,) = _key_and_version(frame)
        self._constant = bytes(frame[8:end])
        self.key = (self._key_and_version, self._constant)
        """The same for all requests that `cut` takes, of this connection or another."""
        self._unpack = struct.Struct(f">ii{end - 8}sBB").unpack_from
        self._request = request._replace(records=_NOTHING)
        reply = encode_single(version, 0, request, (request.partition, 0, 0, -1, 0))
        offsets_at = len(reply) - _REPLY_TAIL_BYTES - _REPLY_OFFSETS_BYTES
        self._reply_bytes = len(reply) - 4
        self._reply_head = reply[8:offsets_at]
        self._reply_tail = reply[-_REPLY_TAIL_BYTES:]
        self._pack_reply = struct.Struct(f">ii{len(self._reply_head)}sqqq{_REPLY_TAIL_BYTES}s").pack

    def cut(self, frame: memoryview) -> tuple[int, memoryview] | None:
        """Correlation id and records of another frame; None if more than those may differ."""
        size, end = len(frame), self._constant_end
        if size < end + 4:
            return None
        key_and_version, correlation_id, constant, low, high = self._unpack(frame)
        if key_and_version != self._key_and_version or constant != self._constant:
            return None
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
        return correlation_id, frame[start:stop]

    def reply(self, correlation_id: int, base_offset: int, log_start_offset: int) -> bytes:
        """The frame that acknowledges a batch."""
        return self._pack_reply(
            self._reply_bytes, correlation_id, self._reply_head, base_offset, -1, log_start_offset,
            self._reply_tail,
        )  # fmt: skip

    def refusal(self, correlation_id: int, error_code: int) -> bytes:
        """The frame that says that nothing was written."""
        row = (self._request.partition, error_code, -1, -1, -1)
        return encode_single(self.version, correlation_id, self._request, row)
