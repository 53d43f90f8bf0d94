"""Batch headers: what they say, walking over batches, and the patches that a broker makes."""

import pytest

from riverlog.model.ids import LeaderEpoch
from riverlog.records.batch import (
    HEADER_BYTES,
    CorruptBatch,
    crc_is_valid,
    patch,
    read_header,
    set_timestamps,
    walk,
)
from riverlog.records.builder import ControlType, NewRecord, build_batch, build_control_batch
from riverlog.records.compression import Codec
from riverlog.records.record import Record, records_of

RECORDS: list[NewRecord] = [(1000 + i, b"key", b"value %d" % i, [("h", b"1")]) for i in range(4)]


def test_a_header_says_what_the_batch_was_built_with() -> None:
    data = build_batch(
        RECORDS,
        base_offset=40,
        leader_epoch=LeaderEpoch(3),
        codec=Codec.ZSTD,
        producer_id=7,
        producer_epoch=2,
        base_sequence=11,
        transactional=True,
    )
    header = read_header(data)
    assert (header.base_offset, header.last_offset, header.next_offset) == (40, 43, 44)
    assert (header.leader_epoch, header.magic, header.record_count) == (3, 2, 4)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, 11)
    assert (header.base_timestamp_ms, header.max_timestamp_ms) == (1000, 1003)
    assert header.last_sequence == 14
    assert header.codec is Codec.ZSTD
    assert header.has_producer_id
    assert header.is_transactional
    assert not header.is_control
    assert not header.is_log_append_time
    assert header.size_bytes == len(data)
    assert crc_is_valid(data, 0, header)


def test_sequences_wrap_to_zero_after_the_greatest() -> None:
    header = read_header(build_batch(RECORDS, producer_id=1, producer_epoch=0, base_sequence=(1 << 31) - 2))
    assert header.last_sequence == 1


def test_without_a_sequence_there_is_no_last_one() -> None:
    assert read_header(build_batch(RECORDS)).last_sequence == -1


def test_fewer_bytes_than_a_header_are_no_batch() -> None:
    data = build_batch(RECORDS)
    for length in range(HEADER_BYTES):
        with pytest.raises(CorruptBatch):
            read_header(data[:length])
    with pytest.raises(CorruptBatch):
        read_header(data, len(data) - HEADER_BYTES + 1)


def test_an_unknown_codec_is_found_when_it_is_asked_for() -> None:
    header = read_header(build_batch(RECORDS))._replace(attributes=6)
    with pytest.raises(CorruptBatch, match="codec 6"):
        _ = header.codec


def test_walking_stops_before_a_batch_that_is_cut_off() -> None:
    first, second = build_batch(RECORDS), build_batch(RECORDS[:1], codec=Codec.LZ4)
    data = first + second
    for end in range(len(data) + 1):
        positions = [position for position, _ in walk(data, 0, end)]
        assert positions == [0][: end >= len(first)] + [len(first)][: end >= len(data)]
    assert [position for position, _ in walk(b"??" + data, 2)] == [2, 2 + len(first)]


@pytest.mark.parametrize("spoil", [{"magic": 1}, {"length": 20}, {"length": -5}])
def test_walking_onto_something_else_is_corruption(spoil: dict[str, int]) -> None:
    bad = bytearray(build_batch(RECORDS))
    if "magic" in spoil:
        bad[16] = spoil["magic"]
    else:
        bad[8:12] = spoil["length"].to_bytes(4, "big", signed=True)
    steps = walk(build_batch(RECORDS) + bad)
    next(steps)
    with pytest.raises(CorruptBatch):
        next(steps)


def test_assigning_an_offset_leaves_the_crc_right() -> None:
    data = bytearray(b"--" + build_batch(RECORDS))
    crc = read_header(data, 2).crc
    patch(data, 2, base_offset=1 << 40, leader_epoch=LeaderEpoch(9))
    header = read_header(data, 2)
    assert (header.base_offset, header.leader_epoch, header.crc) == (1 << 40, 9, crc)
    assert crc_is_valid(data, 2, header)
    assert [record.offset for record in records_of(data, 2)] == [(1 << 40) + i for i in range(4)]


def test_the_brokers_time_replaces_every_records_time_and_the_crc() -> None:
    data = bytearray(build_batch(RECORDS, codec=Codec.SNAPPY))
    set_timestamps(data, 0, log_append_time=True, max_timestamp_ms=5000)
    header = read_header(data)
    assert header.is_log_append_time
    assert crc_is_valid(data, 0, header)
    assert {record.timestamp_ms for record in records_of(data)} == {5000}


def test_one_flipped_bit_behind_the_crc_is_found() -> None:
    data = bytearray(build_batch(RECORDS))
    for position in range(17, len(data)):
        for bit in range(8):
            data[position] ^= 1 << bit
            assert not crc_is_valid(data, 0, read_header(data))
            data[position] ^= 1 << bit
    assert crc_is_valid(data, 0, read_header(data))


def test_a_crc_over_bytes_that_are_not_there_is_wrong() -> None:
    data = build_batch(RECORDS)
    assert not crc_is_valid(data[:-1], 0, read_header(data))


def test_a_control_batch_carries_the_outcome_of_a_transaction() -> None:
    data = build_control_batch(
        ControlType.COMMIT, timestamp_ms=77, producer_id=5, producer_epoch=1, coordinator_epoch=8
    )
    header = read_header(data)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 1, -1)
    assert crc_is_valid(data, 0, header)
    assert list(records_of(data)) == [Record(0, 77, b"\0\0\0\1", b"\0\0\0\0\0\x08", ())]
