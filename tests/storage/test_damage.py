"""Any byte of a closed segment's files flipped: the right records, or an error that names the offset."""

import logging
import random
import struct
from collections.abc import Iterator
from functools import cache

import pytest

from riverlog.model.config.slices import LogConfig
from riverlog.model.errors import DamagedLogError
from riverlog.records.batch import crc_is_valid, walk
from riverlog.records.compression import Codec
from riverlog.records.record import records_of
from riverlog.storage.files import names
from riverlog.storage.log.appends import AppendOrigin
from riverlog.storage.log.log import Log
from riverlog.storage.log.segment_list import LogRead
from riverlog.storage.producers.state import end_marker
from riverlog.testing.simulated_disk import SimulatedDisk
from tests.storage.logs import DIRECTORY, START_MS, append, batch, marker, open_log

CONFIG = LogConfig(segment_bytes=1500, index_interval_bytes=200, segment_index_bytes=4096)
RANDOM_FLIPS = 300
_FETCH_BYTES = 700
_TIMESTAMPS_AT = range(27, 43)


class Written:
    """A log on a disk, and what is in it."""

    def __init__(self, seed: int) -> None:
        self.disk = SimulatedDisk()
        self.values: dict[int, bytes] = {}
        self.committed: dict[int, bytes] = {}
        self.times: dict[int, int] = {}
        self._chance = random.Random(seed)
        log = open_log(self.disk, config=CONFIG)
        self._write(log)
        log.state.set_high_watermark(log.log_end_offset)
        self.end_offset = log.log_end_offset
        self.bases = [segment.base_offset for segment in log.segments]
        log.close()
        self.committed = dict(sorted(self.committed.items()))
        self.contents = {
            f"{DIRECTORY}/{name}": self.disk.read(f"{DIRECTORY}/{name}")
            for name in self.disk.list(DIRECTORY)
            if (parsed := names.parse_segment_file(name)) is not None
            and parsed[1] in names.SEGMENT_FILES
            and parsed[0] != self.bases[-1]
        }

    def _write(self, log: Log) -> None:
        sequences = dict.fromkeys((1, 2, 3), 0)
        open_transactions: dict[int, dict[int, bytes]] = {}
        for round_number in range(90):
            producer = self._chance.choice((-1, -1, 1, 2, 3))
            texts = [b"%d-%d" % (round_number, n) * 5 for n in range(self._chance.randint(1, 4))]
            codec = self._chance.choice((Codec.NONE, Codec.GZIP, Codec.LZ4))
            first = log.log_end_offset
            time_ms = START_MS + 10 * round_number
            is_idempotent = producer >= 0
            append(
                log,
                batch(
                    *texts,
                    timestamp_ms=time_ms,
                    producer_id=producer,
                    epoch=0 if is_idempotent else -1,
                    sequence=sequences[producer] if is_idempotent else -1,
                    transactional=producer > 1,
                    codec=codec,
                ),
            )
            if is_idempotent:
                sequences[producer] += len(texts)
            written = dict(enumerate(texts, first))
            self.values |= written
            self.times |= {offset: time_ms + offset - first for offset in written}
            if producer > 1:
                open_transactions.setdefault(producer, {}).update(written)
            else:
                self.committed |= written
            if open_transactions and self._chance.random() < 0.4:
                self._end(log, open_transactions, self._chance.choice(sorted(open_transactions)), time_ms)
        for ended in sorted(open_transactions):
            self._end(log, open_transactions, ended, START_MS + 1000)

    def _end(self, log: Log, transactions: dict[int, dict[int, bytes]], producer: int, time_ms: int) -> None:
        commits = self._chance.random() < 0.5
        ended = marker(producer, commit=commits, timestamp_ms=time_ms)
        append(log, ended, origin=AppendOrigin.COORDINATOR)
        records = transactions.pop(producer)
        if commits:
            self.committed |= records

    def open(self) -> Log:
        log = open_log(self.disk, config=CONFIG, clean=True, recovery_point=self.end_offset)
        log.state.set_high_watermark(log.log_end_offset)
        return log

    def put(self, path: str, position: int, data: bytes) -> None:
        self.disk.open(path).pwrite(data, position)


@cache
def written(seed: int = 7) -> Written:
    return Written(seed)


@pytest.fixture
def model() -> Iterator[Written]:
    found = written()
    yield found
    for path, content in found.contents.items():
        file = found.disk.open(path, create=True)
        file.truncate(0)
        file.pwrite(content, 0)


def consume(log: Log, offset: int, *, committed: bool) -> tuple[list[tuple[int, bytes | None]], int | None]:
    """What a client that checks CRCs makes of it, and the offset of the error at which it stops."""
    got: list[tuple[int, bytes | None]] = []
    end = log.last_stable_offset if committed else log.high_watermark
    while offset < end:
        try:
            read = log.read(offset, max_bytes=_FETCH_BYTES, end_offset=end)
            assert isinstance(read, LogRead)
            assert read.records is not None, f"nothing at {offset}, though the log ends at {end}"
            aborted = log.aborted_transactions(offset, read.upper_offset) if committed else []
        except DamagedLogError as damage:
            return got, damage.offset
        waiting = sorted(aborted, key=lambda each: each[1])
        data = read.records.file.pread(read.records.length, read.records.position)
        skipped: set[int] = set()
        before = offset
        for at, header in walk(data):
            if not crc_is_valid(data, at, header):
                return got, header.base_offset
            while waiting and waiting[0][1] <= header.last_offset:
                skipped.add(waiting.pop(0)[0])
            if header.is_control:
                ended = end_marker(header, data, at)
                if ended is not None and ended.is_abort:
                    skipped.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in skipped):
                got += [(r.offset, r.value) for r in records_of(data, at) if r.offset >= offset]
            offset = max(offset, header.next_offset)
        assert offset > before, f"a client would ask for {offset} for ever"
    return got, None


def check(model: Written, path: str, where: str, starts: list[int]) -> None:
    log = model.open()
    for committed in (False, True):
        view = model.committed if committed else model.values
        for start in starts:
            got, error = consume(log, start, committed=committed)
            expected = [(offset, value) for offset, value in view.items() if offset >= start]
            if error is None:
                assert got == expected, where
            elif path.endswith(names.TRANSACTION_INDEX):
                assert got == expected[: len(got)], where
            else:
                assert got == [each for each in expected if each[0] < error], where


def check_times(model: Written, where: str) -> None:
    log = model.open()
    for time_ms in range(START_MS - 5, START_MS + 1000, 131):
        expected = next((o for o, at in model.times.items() if at >= time_ms), None)
        try:
            found = log.offset_for_timestamp(time_ms)
        except DamagedLogError:
            continue
        assert expected is None or (found is not None and found.offset == expected), where


def flips(model: Written, seed: int, suffix: str) -> Iterator[tuple[str, int, int]]:
    chance = random.Random(seed)
    paths = sorted(path for path in model.contents if path.endswith(suffix) and model.contents[path])
    for _ in range(RANDOM_FLIPS // 4):
        path = chance.choice(paths)
        position = chance.randrange(len(model.contents[path]))
        yield path, position, chance.choice((1 << chance.randrange(8), chance.randrange(1, 256)))


def is_timestamp(model: Written, path: str, position: int) -> bool:
    """Of a batch's header: a batch that is passed over by its timestamp is not read whole."""
    return path.endswith(names.LOG) and any(
        position - at in _TIMESTAMPS_AT for at, _ in walk(model.contents[path])
    )


@pytest.mark.parametrize("suffix", names.SEGMENT_FILES)
def test_any_byte_flipped_gives_the_right_records_or_an_error_with_the_offset(
    model: Written, suffix: str
) -> None:
    seed = 20261116
    chance = random.Random(seed)
    for path, position, mask in flips(model, seed, suffix):
        where = f"seed {seed}: {path} byte {position} xor {mask:#04x}"
        byte = model.contents[path][position]
        model.put(path, position, bytes([byte ^ mask]))
        check(model, path, where, [0, chance.choice(model.bases), chance.randrange(model.end_offset)])
        if not is_timestamp(model, path, position):
            check_times(model, where)
        model.put(path, position, bytes([byte]))


def test_a_whole_log_is_read_without_an_error(model: Written, caplog: pytest.LogCaptureFixture) -> None:
    log = model.open()
    assert consume(log, 0, committed=False) == (list(model.values.items()), None)
    assert consume(log, 0, committed=True) == (list(model.committed.items()), None)
    assert model.committed != model.values
    assert not caplog.records


def test_a_damaged_length_is_an_error_at_its_offset_and_told_once(
    model: Written, caplog: pytest.LogCaptureFixture
) -> None:
    base, later = model.bases[2], model.bases[3]
    path = names.segment_path(DIRECTORY, base, names.LOG)
    model.put(path, 8, b"\x7f\xff\xff\xff")
    log = model.open()
    for _ in range(3):
        got, error = consume(log, 0, committed=False)
        assert error == base
        assert got == [each for each in model.values.items() if each[0] < base]
        assert consume(log, base, committed=False) == ([], base)
    assert consume(log, later, committed=False)[1] is None
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert len(told) == 1
    assert told[0].startswith(f"orders-0: {path} is damaged at byte 0 (offset {base})")
    assert "riverlog log verify" in told[0]


def test_records_behind_damage_are_found_by_their_offset(model: Written) -> None:
    base = model.bases[1]
    path = names.segment_path(DIRECTORY, base, names.LOG)
    _, header = next(walk(model.contents[path]))
    model.put(path, 8, struct.pack(">i", header.size_bytes + 5))
    last = model.bases[2] - 1
    got, error = consume(model.open(), last, committed=False)
    assert error is None
    assert got == [each for each in model.values.items() if each[0] >= last]


def test_a_base_offset_that_moved_is_an_error_and_not_other_offsets(model: Written) -> None:
    path = names.segment_path(DIRECTORY, model.bases[1], names.LOG)
    at, header = list(walk(model.contents[path]))[3]
    model.put(path, at, struct.pack(">q", header.base_offset + 64))
    got, error = consume(model.open(), 0, committed=False)
    assert error == header.base_offset
    assert got == [each for each in model.values.items() if each[0] < header.base_offset]


def test_an_index_that_the_log_contradicts_is_passed_over_and_told_once(
    model: Written, caplog: pytest.LogCaptureFixture
) -> None:
    path = names.segment_path(DIRECTORY, model.bases[1], names.INDEX)
    for number in range(len(model.contents[path]) // 8):
        model.put(path, number * 8 + 4, b"\x00\x00\x00\x07")
    log = model.open()
    for _ in range(2):
        for offset in range(model.bases[1], model.bases[2]):
            expected = [each for each in model.values.items() if each[0] >= offset]
            assert consume(log, offset, committed=False) == (expected, None)
    places = [record.getMessage().split(":")[1] for record in caplog.records]
    assert places
    assert len(places) == len(set(places))


def test_an_index_that_is_lost_is_built_anew_around_damage_and_nothing_is_cut(model: Written) -> None:
    base = model.bases[1]
    path = names.segment_path(DIRECTORY, base, names.LOG)
    at, header = list(walk(model.contents[path]))[2]
    model.put(path, at + 61, bytes([model.contents[path][at + 61] ^ 1]))
    model.disk.unlink(names.segment_path(DIRECTORY, base, names.INDEX))
    log = model.open()
    assert [segment.base_offset for segment in log.segments] == model.bases
    assert log.log_end_offset == model.end_offset
    assert log.segments[1].size_bytes == len(model.contents[path])
    got, error = consume(log, 0, committed=False)
    assert error == header.base_offset
    assert got == [each for each in model.values.items() if each[0] < header.base_offset]
    behind = header.next_offset
    expected = [each for each in model.values.items() if each[0] >= behind]
    assert consume(log, behind, committed=False) == (expected, None)


def test_a_transaction_index_that_the_log_contradicts_fails_committed_reads_until_it_is_built_anew(
    model: Written,
) -> None:
    path = next(path for path in model.contents if path.endswith(names.TRANSACTION_INDEX))
    content = model.contents[path]
    model.put(path, 9, bytes([content[9] ^ 1]))  # The last byte of the first entry's producer id.
    base = int(path.rpartition("/")[2].partition(".")[0])
    damaged = model.open()
    assert consume(damaged, base, committed=True) == ([], base)
    assert consume(damaged, 0, committed=False) == (list(model.values.items()), None)
    model.disk.unlink(names.segment_path(DIRECTORY, base, names.INDEX))
    assert consume(model.open(), 0, committed=True) == (list(model.committed.items()), None)
    assert model.disk.read(path) == content
