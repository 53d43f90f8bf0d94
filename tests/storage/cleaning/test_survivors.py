"""Which batches a pass need not look into again: the count agrees with a look at every record."""

from hypothesis import given
from hypothesis import strategies as st

from riverlog.storage.cleaning.offset_map import OffsetMap
from riverlog.storage.cleaning.survivors import Fate, Survivors

Batch = list[tuple[bytes | None, bool]]
"""Key of each record, and whether it has a value."""

KEYS = st.one_of(st.none(), st.sampled_from([b"a", b"b", b"c", b"d", b"a key that is longer than a digest"]))
BATCHES = st.lists(st.lists(st.tuples(KEYS, st.booleans()), min_size=1, max_size=4), max_size=12)


def counted(batches: list[Batch], survivors: Survivors) -> list[int]:
    """As a pass notes them; returns the base offsets. Every batch leaves a gap behind it."""
    newest, bases, offset = OffsetMap(100_000), [], 100
    for batch in batches:
        keyed = [(key, offset + number) for number, (key, _) in enumerate(batch) if key is not None]
        is_plain = len(keyed) == len(batch) and all(has_value for _, has_value in batch)
        survivors.add(offset, offset + len(batch), len(keyed), is_plain)
        survivors.lose(newest.put(keyed))
        bases.append(offset)
        offset += len(batch) + 3
    return bases


def stays(batches: list[Batch], number: int) -> list[bool]:
    """Which records of a batch are the newest of their key."""
    flat = [(at, place, key) for at, batch in enumerate(batches) for place, (key, _) in enumerate(batch)]
    last = {key: (at, place) for at, place, key in flat}
    return [key is not None and last[key] == (at, place) for at, place, key in flat if at == number]


@given(BATCHES)
def test_a_fate_is_what_a_look_at_every_record_says(batches: list[Batch]) -> None:
    survivors = Survivors()
    for number, base in enumerate(counted(batches, survivors)):
        left = stays(batches, number)
        is_plain = all(key is not None and has_value for key, has_value in batches[number])
        match survivors.fate(base, len(batches[number])):
            case Fate.NONE_STAYS:
                assert not any(left)
            case Fate.ALL_STAY:
                assert all(left)
                assert is_plain
            case Fate.UNKNOWN:
                assert any(left)
                assert not (all(left) and is_plain)


@given(BATCHES, st.integers(0, 5))
def test_beyond_the_bound_nothing_is_claimed_and_before_it_nothing_wrong(
    batches: list[Batch], bound: int
) -> None:
    survivors = Survivors(batches_max=bound)
    for number, base in enumerate(counted(batches, survivors)):
        fate = survivors.fate(base, len(batches[number]))
        if number >= bound:
            assert fate is Fate.UNKNOWN
        elif fate is not Fate.UNKNOWN:
            assert all(left == (fate is Fate.ALL_STAY) for left in stays(batches, number))


def test_a_batch_that_was_not_noted_has_to_be_looked_into() -> None:
    survivors = Survivors()
    assert survivors.fate(0, 1) is Fate.UNKNOWN
    survivors.add(10, 12, 2, True)
    assert survivors.fate(9, 2) is Fate.UNKNOWN
    assert survivors.fate(11, 2) is Fate.UNKNOWN
    assert survivors.fate(10, 2) is Fate.ALL_STAY
