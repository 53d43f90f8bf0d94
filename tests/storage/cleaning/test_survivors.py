"""Which records a pass knows to stay without looking again: the same as a look at every record says."""

from hypothesis import given
from hypothesis import strategies as st

from riverlog.records.batch import BatchHeader, read_header
from riverlog.records.builder import build_batch
from riverlog.records.retained import keys_of_plain, open_batch, shapes_of
from riverlog.storage.cleaning.offset_map import OffsetMap
from riverlog.storage.cleaning.survivors import Survivors

Batch = list[tuple[bytes | None, bytes | None]]
"""Key and value of each record."""

KEYS = st.one_of(st.none(), st.sampled_from([b"a", b"b", b"c", b"d", b"a key that is longer than a digest"]))
VALUES = st.sampled_from([b"1", b"2", None])
BATCHES = st.lists(st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=4), max_size=12)


def noted(batches: list[Batch], survivors: Survivors) -> list[BatchHeader]:
    """As a pass notes them. Every batch leaves a gap behind it."""
    newest, headers, offset = OffsetMap(100_000), [], 100
    for batch in batches:
        data = bytearray(build_batch([(1_000, key, value, ()) for key, value in batch]))
        data[:8] = offset.to_bytes(8, "big")
        header = read_header(data)
        plain = open_batch(data, 0, header, 1_000_000)
        keys = keys_of_plain(plain)
        survivors.note(header, is_plain=keys is not None)
        if keys is not None:
            newest.put_in_order(keys, offset)
        else:
            newest.put((key, at) for at, _, key, _ in shapes_of(plain) if key is not None)
        headers.append(header)
        offset = header.next_offset + 3
    survivors.settle(newest.offsets())
    return headers


def staying(batches: list[Batch], headers: list[BatchHeader]) -> list[list[int]]:
    """The offsets of the newest record of each key, batch by batch."""
    every = [
        (header.base_offset + number, key)
        for batch, header in zip(batches, headers, strict=True)
        for number, (key, _) in enumerate(batch)
    ]
    last = {key: offset for offset, key in every if key is not None}
    newest = set(last.values())
    return [sorted(newest.intersection(range(each.base_offset, each.next_offset))) for each in headers]


def is_plain(batch: Batch) -> bool:
    return all(key is not None and value is not None for key, value in batch)


@given(BATCHES)
def test_what_stays_of_a_plain_batch_is_known_and_others_are_looked_into(batches: list[Batch]) -> None:
    survivors = Survivors()
    headers = noted(batches, survivors)
    for batch, header, left in zip(batches, headers, staying(batches, headers), strict=True):
        known = survivors.of(header)
        assert (list(known) if known is not None else None) == (left if is_plain(batch) else None)


@given(BATCHES, st.integers(0, 3))
def test_beyond_the_bound_nothing_is_claimed_and_before_it_nothing_wrong(
    batches: list[Batch], odd_max: int
) -> None:
    survivors = Survivors(odd_max=odd_max)
    headers = noted(batches, survivors)
    odd = 0
    for batch, header, left in zip(batches, headers, staying(batches, headers), strict=True):
        known = survivors.of(header)
        assert known is None or list(known) == left
        if odd >= odd_max:
            assert known is None
        odd += not is_plain(batch)


def test_a_batch_that_was_not_noted_has_to_be_looked_into() -> None:
    survivors = Survivors()
    [header] = noted([[(b"a", b"1")]], survivors)
    assert survivors.of(header._replace(base_offset=header.base_offset - 1)) is None
    assert survivors.of(header._replace(base_offset=header.next_offset)) is None
    assert survivors.of(header) is not None
