"""Two replicas of a partition held against each other: the files of one, and what another broker sends.

They must be the same byte for byte below the lower end of the two, where both have the offsets. Logs that are
compacted, each by its own broker at its own time, must agree on the newest record of every key instead.
Nothing is fetched or read here; batches come in the order of their offsets.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import zip_longest
from typing import Final, NamedTuple

from riverlog.records.batch import BatchHeader
from riverlog.records.record import Record, records_of

_COMMIT: Final = 1


class Batch(NamedTuple):
    header: BatchHeader
    data: bytes


@dataclass(frozen=True, slots=True)
class Difference:
    offset: int
    what: str


def between(batches: Iterable[Batch], start: int, end: int) -> Iterator[Batch]:
    """Those that lie between two offsets as a whole."""
    for batch in batches:
        if batch.header.next_offset > end:
            return
        if batch.header.base_offset >= start:
            yield batch


def differences(here: Iterable[Batch], there: Iterable[Batch]) -> Iterator[Difference]:
    """Ends at the first batch that only one of them has, as all others would be moved against each other."""
    for ours, theirs in zip_longest(here, there):
        if ours is None or theirs is None:
            who, other = ("there", "here") if ours is None else ("here", "there")
            first = (theirs if ours is None else ours).header.base_offset
            yield Difference(first, f"{who} is a batch that is missing {other}")
            return
        if ours.header.base_offset != theirs.header.base_offset:
            at = min(ours.header.base_offset, theirs.header.base_offset)
            told = f"{_span(ours.header)} here and {_span(theirs.header)} there"
            yield Difference(at, f"the batches differ: {told}")
            return
        if ours.data != theirs.data:
            yield Difference(ours.header.base_offset, f"the bytes of the batch {_span(ours.header)} differ")


def differences_by_key(here: Iterable[Batch], there: Iterable[Batch]) -> Iterator[Difference]:
    """Of compacted logs: a deletion counts as a key that is not there."""
    ours, theirs = _newest(here), _newest(there)
    for key in sorted(ours.keys() | theirs.keys(), key=lambda key: _offset(ours.get(key), theirs.get(key))):
        left, right = ours.get(key), theirs.get(key)
        if left != right:
            at = " and ".join(
                f"{'none' if each is None else f'at offset {each.offset}'} {where}"
                for each, where in ((left, "here"), (right, "there"))
            )
            yield Difference(_offset(left, right), f"the newest records of a key differ: {at}")


class _Newest(NamedTuple):
    offset: int
    value: bytes
    """A digest of it, so that memory goes by the number of keys; empty for a deletion."""


def _newest(batches: Iterable[Batch]) -> dict[bytes, _Newest]:
    """Records of a transaction count when it is committed. One without a marker is: aborted records are taken
    out by the cleaner before their marker is, and what is open lies above what is compared."""
    found: dict[bytes, _Newest] = {}
    open_records: dict[int, list[Record]] = {}
    for header, data in batches:
        if header.is_control:
            [marker, *_] = records_of(data, 0)
            ended = open_records.pop(header.producer_id, [])
            if marker.key is not None and marker.key[3] == _COMMIT:
                _note(found, ended)
        elif header.is_transactional:
            open_records.setdefault(header.producer_id, []).extend(records_of(data, 0))
        else:
            _note(found, records_of(data, 0))
    for left in open_records.values():
        _note(found, left)
    return {key: newest for key, newest in found.items() if newest.value}


def _note(found: dict[bytes, _Newest], records: Iterable[Record]) -> None:
    """A transaction is noted at its end, after records that may have come in between."""
    for record in records:
        if record.key is None:
            continue
        key = _digest(record.key)
        known = found.get(key)
        if known is None or known.offset < record.offset:
            found[key] = _Newest(record.offset, b"" if record.value is None else _digest(record.value))


def _offset(left: _Newest | None, right: _Newest | None) -> int:
    return min(each.offset for each in (left, right) if each is not None)


def _digest(data: bytes | memoryview) -> bytes:
    return blake2b(data, digest_size=16).digest()


def _span(header: BatchHeader) -> str:
    return f"{header.base_offset} to {header.last_offset}"
