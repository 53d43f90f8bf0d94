"""A produce request as a template for those that differ from it in their records alone, and their replies.

A producer that sends small batches to one partition repeats everything in front of them: API, version, client
id, topic, partition. Where those bytes are the same, so is what they mean: only the records are cut out, and
the reply is that of the request before but for three numbers. Flexible versions outside of a transaction,
with records of less than 16 KB; anything else, and any doubt, is decoded as usual.
"""

import struct
from typing import Final

from riverlog.wire.apis import TOPIC_ID_VERSION_MIN
from riverlog.wire.by_hand.produce_request import FLEXIBLE_VERSION_MIN, SingleBatch
from riverlog.wire.by_hand.produce_response import encode_single_produce
from riverlog.wire.framing import RequestHeader

VERSION_MIN: Final = FLEXIBLE_VERSION_MIN
_key_and_version: Final = struct.Struct(">i").unpack_from
_tags: Final = struct.Struct(">HB").unpack_from
_NO_RECORDS: Final = memoryview(b"")
_TAGS_BYTES: Final = 3  # A zero each for partition, topic and request.
_REPLY_OFFSETS_BYTES: Final = 24
_REPLY_TAIL_BYTES: Final = 9  # No record errors, no message, no tags, no throttling, no tags.


class ProduceTemplate:
    """What stands in front of the records of a request, and around the offsets of its reply."""

    __slots__ = (
        "_key_and_version", "_pack_reply", "_prefix", "_prefix_end", "_reply_bytes", "_reply_head",
        "_reply_tail", "_request", "_unpack", "key", "version",
    )  # fmt: skip

    def __init__(self, frame: memoryview, header: RequestHeader, body: int, request: SingleBatch) -> None:
        """`body` is where the body begins in the frame that `header` and `request` were decoded from."""
        version = self.version = header.api_version
        name_bytes = 16 if version >= TOPIC_ID_VERSION_MIN else 1 + len(request.name.encode())
        # Before the topic: transactional id, acks, time-out, count. After it: count, partition.
        end = self._prefix_end = body + 8 + name_bytes + 5
        (self._key_and_version,) = _key_and_version(frame)
        self._prefix = bytes(frame[8:end])  # Without the correlation id, which differs each time.
        self.key = (self._key_and_version, self._prefix)
        """The same for all requests that `match` takes, of this connection or another."""
        self._unpack = struct.Struct(f">ii{end - 8}sBB").unpack_from
        self._request = request._replace(records=_NO_RECORDS)
        reply = encode_single_produce(version, 0, request, (request.partition, 0, 0, -1, 0))
        offsets_at = len(reply) - _REPLY_TAIL_BYTES - _REPLY_OFFSETS_BYTES
        self._reply_bytes = len(reply) - 4
        self._reply_head = reply[8:offsets_at]
        self._reply_tail = reply[-_REPLY_TAIL_BYTES:]
        self._pack_reply = struct.Struct(f">ii{len(self._reply_head)}sqqq{_REPLY_TAIL_BYTES}s").pack

    def match(self, frame: memoryview) -> tuple[int, memoryview] | None:
        """Correlation id and records of another frame; None if more than those may differ."""
        size, end, unpack = len(frame), self._prefix_end, self._unpack
        if size < end + 4:
            return None
        key_and_version, correlation_id, prefix, low, high = unpack(frame)
        if key_and_version != self._key_and_version or prefix != self._prefix:
            return None
        if low < 128:
            start = end + 1
            stop = end + low
        elif 0 < high < 128:
            start = end + 2
            stop = end + 1 + (low & 0x7F | high << 7)
        else:
            return None
        if low == 0 or stop + _TAGS_BYTES > size or _tags(frame, stop) != (0, 0):
            return None
        return correlation_id, frame[start:stop]

    def encode_reply(self, correlation_id: int, base_offset: int, log_start_offset: int) -> bytes:
        """The frame that acknowledges a batch."""
        pack = self._pack_reply
        return pack(
            self._reply_bytes, correlation_id, self._reply_head, base_offset, -1, log_start_offset,
            self._reply_tail,
        )  # fmt: skip

    def encode_error(self, correlation_id: int, error_code: int) -> bytes:
        """The frame that says that nothing was written."""
        row = (self._request.partition, error_code, -1, -1, -1)
        return encode_single_produce(self.version, correlation_id, self._request, row)
