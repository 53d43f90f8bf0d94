"""Records taken out of a batch by their numbers: what is left is what was there, with the right header."""

from hypothesis import given
from hypothesis import strategies as st

from riverlog.records.batch import crc_is_valid, read_header
from riverlog.records.builder import build_batch
from riverlog.records.compression import Codec
from riverlog.records.retained import keys_of_plain, open_batch, retain, shapes_of

LIMIT = 10_000_000
KEYS = st.one_of(st.none(), st.binary(max_size=20))
# Lengths of one, two and three bytes, as they are written in front of a record.
VALUES = st.one_of(st.none(), st.sampled_from([0, 40, 60, 500, 9_000]).map(bytes))
TIMES = st.integers(1_000_000, 1_000_400) | st.just(1_000_000)
RECORDS = st.lists(st.tuples(TIMES, KEYS, VALUES, st.just(())), min_size=1, max_size=8)


@given(RECORDS, st.sampled_from(Codec), st.data())
def test_what_is_kept_stays_as_it_was_and_the_header_has_its_newest_timestamp(
    records: list[tuple[int, bytes | None, bytes | None, tuple[()]]], codec: Codec, data: st.DataObject
) -> None:
    numbers = st.integers(0, len(records) - 1)
    kept = sorted(data.draw(st.sets(numbers, min_size=1)))
    batch = build_batch(records, codec=codec)
    plain = open_batch(batch, 0, read_header(batch), LIMIT)
    left = bytes(retain(plain, kept))
    header = read_header(left)
    assert crc_is_valid(left, 0, header)
    assert (header.base_offset, header.last_offset_delta) == (0, len(records) - 1)
    assert header.max_timestamp_ms == max(records[number][0] for number in kept)
    before = shapes_of(plain)
    assert shapes_of(open_batch(left, 0, header, LIMIT)) == [before[number] for number in kept]


@given(RECORDS)
def test_the_keys_of_a_batch_are_given_where_all_have_key_and_value(
    records: list[tuple[int, bytes | None, bytes | None, tuple[()]]],
) -> None:
    batch = build_batch(records)
    keys = keys_of_plain(open_batch(batch, 0, read_header(batch), LIMIT))
    if all(key is not None and value is not None for _, key, value, _ in records):
        assert keys == [key for _, key, _, _ in records]
    else:
        assert keys is None


def test_a_batch_that_stands_in_a_larger_buffer_is_opened_where_it_is_and_reads_the_same() -> None:
    batch = build_batch([(1_000, b"k%d" % number, bytes(number), ()) for number in range(5)])
    header = read_header(batch)
    alone = open_batch(batch, 0, header, LIMIT)
    among = open_batch(b"before" + batch + bytes(64), 6, header, LIMIT)
    assert bytes(among.view) == bytes(alone.view)
    assert shapes_of(among) == shapes_of(alone)


def test_a_batch_that_was_thinned_out_is_not_taken_for_one_in_order() -> None:
    batch = build_batch([(1_000, b"k%d" % number, b"v", ()) for number in range(4)])
    thin = bytes(retain(open_batch(batch, 0, read_header(batch), LIMIT), [1, 3]))
    assert keys_of_plain(open_batch(thin, 0, read_header(thin), LIMIT)) is None
