"""Lives of a compacted log that end badly, and what is wrong afterwards: nothing, if the cleaner is right.

`test_crash` demands that there are no faults; `test_mutations` switches a rule off and demands some.
"""

from collections.abc import Callable
from contextlib import closing

from riverlog.model.config.slices import LogConfig
from riverlog.model.errors import CorruptLogError, StorageError
from riverlog.storage.directory.log_directory import LogDirectory
from riverlog.storage.inspect import Finding, verify
from riverlog.storage.log.appends import AppendOrigin
from riverlog.storage.log.log import Log
from riverlog.testing.simulated_disk import PowerOff, SimulatedDisk
from tests.storage.cleaning.compaction import CONFIG, begin_cleaning, headers, keyed
from tests.storage.logs import PARTITION, START_MS, ManualClock, append, marker, read_all
from tests.storage.scenarios import TOPIC_ID, open_directory

Written = tuple[int, bytes, bytes | None]
"""Offset, key, value."""


class TableLife:
    """Keyed records, some in transactions, with a pass of the cleaner now and then.

    `written` is everything that was sent, by offset; `aborted` the offsets that must never be seen.
    """

    def __init__(self, config: LogConfig = CONFIG) -> None:
        self.config = config
        self.clock = ManualClock()
        self.written: list[Written] = []
        self.aborted: set[int] = set()
        self.acknowledged = 0

    def run(self, disk: SimulatedDisk, rounds: int = 5) -> None:
        directory = open_directory(disk, self.clock, config=self.config)
        directory.create(PARTITION, TOPIC_ID)
        log = directory.get(PARTITION, TOPIC_ID)
        assert log is not None
        for number in range(rounds):
            self._round(log, number)
            log.sync.flush()
            self.acknowledged = log.flushed_offset
            log.state.set_high_watermark(log.log_end_offset)
            log.sync.roll()
            directory.begin_checkpoint()()
            self.clean(log, directory)
            self.clock.now_ms += 400
            if number == rounds // 2:
                directory.close()
                directory = open_directory(disk, self.clock, config=self.config)
                log = directory.get(PARTITION, TOPIC_ID)
                assert log is not None

    def clean(self, log: Log, directory: LogDirectory) -> None:
        with closing(begin_cleaning(log, self.clock).steps()) as steps:
            for step in steps:
                step()
        directory.begin_cleaner_checkpoint()()

    def _round(self, log: Log, number: int) -> None:
        for key in range(6):
            self._send(log, b"plain-%d" % key, b"%d" % number * 10)
        self._send(log, b"gone", None if number % 2 else b"there")
        for each in range(2):
            self._send(log, b"shared", b"tx-%d-%d" % (number, each), sequence=number * 2 + each)
        commit = number % 2 == 0
        if not commit:
            self.aborted.update(offset for offset, _, _ in self.written[-2:])
        append(log, marker(2, commit=commit, timestamp_ms=self.clock.now_ms), origin=AppendOrigin.COORDINATOR)

    def _send(self, log: Log, key: bytes, value: bytes | None, *, sequence: int | None = None) -> None:
        offset = log.log_end_offset
        self.written.append((offset, key, value))
        if sequence is None:
            batch = keyed((key, value), timestamp_ms=self.clock.now_ms)
        else:
            batch = keyed(
                (key, value),
                timestamp_ms=self.clock.now_ms,
                producer_id=2,
                sequence=sequence,
                transactional=True,
            )
        append(log, batch)

    def faults_of(self, log: Log) -> list[str]:
        """Offsets hold what was written there; the newest of each key is there, unless it is a tombstone."""
        sent = {offset: (key, value) for offset, key, value in self.written}
        found: list[str] = []
        held = [record for record in read_all(log) if record.offset in sent]
        offsets = [record.offset for record in held]
        if offsets != sorted(set(offsets)):
            found.append(f"offsets are out of order: {offsets}")
        found += [
            f"offset {record.offset} holds {record.key!r}: {record.value!r}"
            for record in held
            if sent[record.offset] != (record.key, record.value)
        ]
        found += [
            f"the newest of {key!r} is gone: {value!r} at {offset}"
            for offset, key, value in self._must_be_there(log)
            if offset not in set(offsets)
        ]
        if log.log_end_offset < self.acknowledged:
            found.append(
                f"{self.acknowledged} offsets were acknowledged, the log ends at {log.log_end_offset}"
            )
        return found + self._transaction_faults(log)

    def _must_be_there(self, log: Log) -> list[Written]:
        """Of what stands in the log: the newest of each key, unless it is a tombstone, and everything from
        the first open transaction on.
        """
        unstable = log.producers.first_unstable_offset()
        settled = log.log_end_offset if unstable is None else unstable
        newest = {
            written[1]: written
            for written in self.written
            if written[0] < settled and written[0] not in self.aborted
        }
        unsettled = [written for written in self.written if settled <= written[0] < log.log_end_offset]
        return [written for written in newest.values() if written[2] is not None] + unsettled

    def _transaction_faults(self, log: Log) -> list[str]:
        """Every aborted record that is left is told to be aborted, and no other."""
        aborted = log.aborted_transactions(0, log.log_end_offset)
        found: list[str] = []
        ends = {header.base_offset for header in headers(log) if header.is_control}
        for header in headers(log):
            if not header.is_transactional or header.is_control or not header.record_count:
                continue
            is_aborted = any(
                producer_id == header.producer_id
                and first <= header.base_offset < min((end for end in ends if end > first), default=1 << 60)
                for producer_id, first in aborted
            )
            if is_aborted != (header.base_offset in self.aborted) and header.last_offset < self.acknowledged:
                found.append(f"the batch at {header.base_offset} is taken for aborted={is_aborted}")
        return found


def changes_in_table_life() -> int:
    disk = SimulatedDisk()
    TableLife().run(disk)
    return disk.operations


def crash_faults(power_off_after: int, end: Callable[[SimulatedDisk], None]) -> list[str]:
    """Stop after so many changes to the disk, end it in some way, open again, clean again, open again."""
    disk, life = SimulatedDisk(), TableLife()
    disk.power_off_after = power_off_after
    try:
        life.run(disk)
    except PowerOff:
        end(disk)
    try:
        return _faults_after_restart(disk, life)
    except (StorageError, CorruptLogError) as error:
        return [str(error)]


def _faults_after_restart(disk: SimulatedDisk, life: TableLife) -> list[str]:
    directory, log = _open(disk, life)
    faults = life.faults_of(log) + _findings(disk, log)
    faults += [
        f"{name} was left behind"
        for name in disk.list(log.directory)
        if name.endswith((".cleaned", ".swap", ".deleted"))
    ]
    log.state.set_high_watermark(log.log_end_offset)
    log.sync.roll()
    log.sync.flush()
    life.clean(log, directory)
    faults += life.faults_of(log) + _findings(disk, log)
    directory.close()
    directory, log = _open(disk, life)
    faults += life.faults_of(log) + _findings(disk, log)
    append(log, keyed((b"life", b"goes on"), timestamp_ms=START_MS), leader_epoch=9)
    if read_all(log)[-1].value != b"goes on":
        faults.append("the log takes no appends")
    directory.close()
    return faults


def _open(disk: SimulatedDisk, life: TableLife) -> tuple[LogDirectory, Log]:
    directory = open_directory(disk, life.clock, config=life.config)
    directory.create(PARTITION, TOPIC_ID)
    log = directory.get(PARTITION, TOPIC_ID)
    assert log is not None
    return directory, log


def _findings(disk: SimulatedDisk, log: Log) -> list[str]:
    return [str(each) for each in verify(disk, log.directory) if isinstance(each, Finding)]
