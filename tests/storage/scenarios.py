"""Lives of a log that end badly, and what is wrong afterwards: nothing, if the engine is right.

Each function returns violations as text. `test_crash` and `test_recovery` demand that there are none;
`test_mutations` switches a safeguard off and demands that there are some.
"""

import contextlib
from collections.abc import Callable
from itertools import count
from uuid import UUID

from riverlog.model.config.slices import LogConfig
from riverlog.model.errors import CorruptLogError, FormatError, StorageError
from riverlog.model.ids import LeaderEpoch, NodeId, TopicId
from riverlog.storage.directory.log_directory import LogDirectory
from riverlog.storage.log.appends import AppendOrigin, Duplicate
from riverlog.storage.log.log import Log
from riverlog.testing.simulated_disk import PowerOff, SimulatedDisk
from tests.storage.checks import violations
from tests.storage.logs import (
    PARTITION,
    START_MS,
    ManualClock,
    append,
    batch,
    marker,
    open_log,
    values,
)

CONFIG = LogConfig(segment_bytes=700, index_interval_bytes=150)
TOPIC_ID = TopicId(UUID(int=7))


def open_directory(
    disk: SimulatedDisk,
    clock: ManualClock | None = None,
    *,
    config: LogConfig = CONFIG,
    boot_id: str = "",
) -> LogDirectory:
    return LogDirectory.open(
        "/data",
        disk=disk,
        clock=clock or ManualClock(),
        node_id=NodeId(1),
        cluster_id="cluster",
        new_uuid=lambda: UUID(int=1),
        config_for=lambda topic: config,
        boot_id=boot_id,
    )


class Life:
    """What a client was told: values by offset, and how many of them it was told are safe."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.acknowledged = 0

    def run(self, disk: SimulatedDisk, *, synced: bool, rounds: int = 12) -> None:
        """Acknowledge what is synced, or what is written; a clean restart comes half-way."""
        directory = open_directory(disk)
        directory.create(PARTITION, TOPIC_ID)
        log = directory.get(PARTITION, TOPIC_ID)
        assert log is not None
        for number in range(rounds):
            self._round(log, number)
            if synced and number % 2:
                log.sync.flush()
            if synced:
                self.acknowledged = log.flushed_offset
            else:
                self.acknowledged = log.log_end_offset
            if number % 5 == 4:
                log.state.set_high_watermark(log.flushed_offset)
                directory.begin_checkpoint()()
            if number == rounds // 2:
                directory.close()
                self.acknowledged = log.log_end_offset
                directory = open_directory(disk)
                log = directory.get(PARTITION, TOPIC_ID)
                assert log is not None

    def run_with_syncs_in_progress(self, disk: SimulatedDisk, rounds: int = 12) -> None:
        """As with a flusher: records are written, and segments rolled, while a sync is in progress."""
        directory = open_directory(disk)
        directory.environment.request_sync = lambda log: None
        directory.create(PARTITION, TOPIC_ID)
        log = directory.get(PARTITION, TOPIC_ID)
        assert log is not None
        for number in range(rounds):
            task = log.sync.begin()
            if number % 2:
                task.run()
            self._round(log, number)
            if not number % 2:
                task.run()
            log.sync.finish(task)
            self.acknowledged = log.flushed_offset
            if number % 3 == 2:
                directory.begin_checkpoint()()

    def run_with_closings(self, disk: SimulatedDisk, rounds: int = 10) -> None:
        """The log is closed whenever nobody uses it, and opened again; the directory stays open. Written is
        acknowledged, and in half of the rounds more is written while the log is being saved."""
        directory = open_directory(disk, boot_id="boot")
        directory.environment.request_sync = lambda log: None  # One sync at a time, as with a flusher.
        directory.create(PARTITION, TOPIC_ID)
        numbers = count()
        for number in range(rounds):
            log = directory.get(PARTITION, TOPIC_ID)
            assert log is not None
            self._round(log, next(numbers))
            log.state.commit_all()
            self.acknowledged = log.log_end_offset
            task = log.sync.begin_save()
            if number % 2:
                self._round(log, next(numbers))
                self.acknowledged = log.log_end_offset
            if task is not None:
                task.run()
                log.sync.finish(task)
            assert log.sync.is_saved_by(task) == (number % 2 == 0)
            if log.sync.is_saved_by(task):
                directory.logs.close_saved(log)
                write = directory.begin_leaving([PARTITION])
                if number % 4 == 2:  # Somebody opens it before that is written down.
                    directory.get(PARTITION, TOPIC_ID)
                write()
                directory.finish_leaving()

    def _round(self, log: Log, number: int) -> None:
        self._send(log, b"plain-%d" % number * 5)
        self._send(log, b"idempotent-%d" % number, producer_id=1, sequence=number)
        self._send(log, b"transactional-%d" % number, producer_id=2, sequence=number, transactional=True)
        if number % 3 == 2:
            self.sent.append(b"")
            append(
                log,
                marker(2, commit=number % 2 == 0),
                leader_epoch=number // 4,
                origin=AppendOrigin.COORDINATOR,
            )

    def _send(
        self,
        log: Log,
        value: bytes,
        *,
        producer_id: int = -1,
        sequence: int = -1,
        transactional: bool = False,
    ) -> None:
        self.sent.append(value)
        accepted = batch(
            value,
            timestamp_ms=START_MS + len(self.sent),
            producer_id=producer_id,
            epoch=0 if producer_id >= 0 else -1,
            sequence=sequence,
            transactional=transactional,
        )
        append(log, accepted, leader_epoch=len(self.sent) // 12)

    def faults_of(self, log: Log) -> list[str]:
        """What is in the log must be a prefix of what was sent, with everything acknowledged."""
        found: list[str] = []
        if log.log_end_offset < self.acknowledged:
            found.append(f"{self.acknowledged} records were acknowledged, {log.log_end_offset} are left")
        kept = values(log)
        if [offset for offset, _ in kept] != list(range(log.log_end_offset)):
            found.append(f"offsets up to {log.log_end_offset} are {[offset for offset, _ in kept]}")
        for (offset, value), sent in zip(kept, self.sent, strict=False):
            if sent and value != sent:
                found.append(f"offset {offset} holds {value!r}, {sent!r} was sent")
        return found


def synced_life(life: Life, disk: SimulatedDisk) -> None:
    life.run(disk, synced=True)


def written_life(life: Life, disk: SimulatedDisk) -> None:
    life.run(disk, synced=False)


def overlapping_life(life: Life, disk: SimulatedDisk) -> None:
    life.run_with_syncs_in_progress(disk)


def closing_life(life: Life, disk: SimulatedDisk) -> None:
    life.run_with_closings(disk)


def changes_in(live: Callable[[Life, SimulatedDisk], None]) -> int:
    disk = SimulatedDisk()
    live(Life(), disk)
    return disk.operations


def power_cut_faults(
    power_off_after: int, seed: int, live: Callable[[Life, SimulatedDisk], None] = synced_life
) -> list[str]:
    """Cut the power after so many changes to the disk; acknowledged is what was synced."""
    return _faults_after(power_off_after, lambda disk: disk.crash(seed), live)


def kill_faults(
    power_off_after: int,
    live: Callable[[Life, SimulatedDisk], None] = written_life,
    *,
    boot_id: str = "",
) -> list[str]:
    """End the process after so many changes; acknowledged is what was written."""
    return _faults_after(power_off_after, lambda disk: disk.kill(), live, boot_id)


def _faults_after(
    power_off_after: int,
    end: Callable[[SimulatedDisk], None],
    live: Callable[[Life, SimulatedDisk], None],
    boot_id: str = "",
) -> list[str]:
    disk, life = SimulatedDisk(), Life()
    disk.power_off_after = power_off_after
    with contextlib.suppress(PowerOff):  # A life in which something is left undone may be over before.
        live(life, disk)
    end(disk)
    try:
        directory = open_directory(disk, boot_id=boot_id)
        directory.create(PARTITION, TOPIC_ID)
        log = directory.get(PARTITION, TOPIC_ID)
        assert log is not None
        faults = life.faults_of(log) + violations(log, disk)
        append(log, batch(b"life goes on"), leader_epoch=100)
        if values(log)[-1][1] != b"life goes on":
            faults.append("the recovered log takes no appends")
        directory.close()
        again = open_directory(disk)
        reopened = again.get(PARTITION, TOPIC_ID)
        assert reopened is not None
        return faults + violations(reopened, disk)
    except (StorageError, CorruptLogError, FormatError) as error:
        return [str(error)]


def flipped_bit_faults(bit: int) -> tuple[list[str], int]:
    """Flip a bit of a log that was not synced; returns violations after recovery, and where the log ends."""
    disk = SimulatedDisk()
    log = open_log(disk)
    for number in range(4):
        append(log, batch(b"value-%d" % number, timestamp_ms=START_MS + number))
    path = log.segments[0].log.path
    disk.kill()
    disk.flip_bit(path, bit % (disk.size(path) * 8))
    recovered = open_log(disk)
    # Recovery may run with a safeguard switched off; what it left is judged by what was sent.
    faults = [
        f"offset {offset} holds {value!r}"
        for offset, value in values(recovered)
        if value != b"value-%d" % offset
    ]
    return faults, recovered.log_end_offset


def retry_faults(*, restart: bool) -> list[str]:
    """Five batches in flight, each sent again: one append per sequence, answered with its first offset."""
    disk = SimulatedDisk()
    log = open_log(disk)
    sent = [(b"batch-%d" % number, number) for number in range(8)]
    first = {
        sequence: append(log, batch(value, producer_id=9, epoch=0, sequence=sequence)).first_offset
        for value, sequence in sent
    }
    if restart:
        log.close()
        log = open_log(disk, clean=True, recovery_point=8)
    faults = []
    for value, sequence in sent[-5:]:
        outcome = log.append(
            batch(value, producer_id=9, epoch=0, sequence=sequence), leader_epoch=LeaderEpoch(0)
        )
        match outcome:
            case Duplicate(first_offset=offset) if offset == first[sequence]:
                continue
            case _:
                faults.append(f"the retry of sequence {sequence} was answered with {outcome}")
    kept = [value for _, value in values(log)]
    if kept != [value for value, _ in sent]:
        faults.append(f"the log holds {kept}")
    return faults
