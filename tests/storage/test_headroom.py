"""A segment that says up to where nothing is due gives the files that one gives which is asked every time."""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from riverlog.model.config.slices import LogConfig
from riverlog.model.disk import ReadableBuffer
from riverlog.model.ids import LeaderEpoch
from riverlog.records.batch import patch
from riverlog.storage.log.appends import Appended, AppendOrigin
from riverlog.storage.log.log import Log
from riverlog.storage.log.segment import Segment
from riverlog.storage.log.segment_list import LogRead, SegmentList
from riverlog.storage.log.state import LogState
from riverlog.testing.simulated_disk import SimulatedDisk
from tests.storage.logs import DIRECTORY, START_MS, ManualClock, accept, batch, open_log

STEPS = 400
CONFIG = LogConfig(
    segment_bytes=6_000,
    index_interval_bytes=900,
    segment_index_bytes=60,
    segment_ms=60_000,
    retention_ms=None,
    file_delete_delay_ms=0,
)
SETTINGS = [
    CONFIG,
    replace(CONFIG, segment_bytes=2_000),
    replace(CONFIG, index_interval_bytes=150),
    replace(CONFIG, segment_ms=1_000),
    replace(CONFIG, segment_jitter_ms=500),
    replace(CONFIG, flush_messages=7),
    replace(CONFIG, segment_index_bytes=24),
]
Outcome = tuple[dict[str, bytes], list[object]]


class Life:
    """One log, and the same steps for any other with the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.disk, self.clock = SimulatedDisk(), ManualClock()
        self.log: Log = open_log(self.disk, self.clock, config=CONFIG)
        self.epoch, self.sequence, self.at_ms = 0, 0, START_MS
        self.seen: list[object] = []

    def step(self) -> None:
        weights = {
            self.append: 60,
            self.append_known: 15,
            self.append_by_coordinator: 3,
            self.append_replicated: 4,
            self.new_epoch: 4,
            self.truncate: 4,
            self.configure: 3,
            self.roll: 1,
            self.restart: 2,
            self.retain: 1,
        }
        (act,) = self.random.choices(list(weights), list(weights.values()))
        act()
        log = self.log
        active = log.segments[-1]
        self.seen += [log.log_end_offset, log.state.epochs.entries, len(log.segments), active.size_bytes]
        self.seen += [active.max_timestamp_ms, active.max_timestamp_offset, active.next_offset]
        self.read()

    def read(self) -> None:
        """At the tail, where positions are remembered."""
        end = self.log.log_end_offset
        offset = max(self.log.log_start_offset, end - self.random.randrange(1, 60))
        found = self.log.read(offset, max_bytes=self.random.choice([1, 300, 5_000]), end_offset=end)
        assert isinstance(found, LogRead)
        self.seen.append(None if found.records is None else found.records[1:])

    def append(self, origin: AppendOrigin = AppendOrigin.CLIENT, **producer: int) -> None:
        self.at_ms += self.random.choice([0, 1, 1, 5, 40, 400, -300])
        values = [
            self.random.randbytes(self.random.randrange(90)) for _ in range(self.random.randrange(1, 4))
        ]
        accepted = batch(*values, timestamp_ms=self.at_ms, **producer)  # type: ignore[arg-type]
        first_offset = None
        if not producer and self.random.random() < 0.8:
            [(_, header)] = accepted.batches
            first_offset = self.log.appending.append_within_headroom(
                accepted.data, header.last_offset_delta, header.max_timestamp_ms, LeaderEpoch(self.epoch)
            )
        if first_offset is None:
            appended = self.log.append(accepted, leader_epoch=LeaderEpoch(self.epoch), origin=origin)
            first_offset = appended.first_offset if isinstance(appended, Appended) else None
        self.seen.append(first_offset)

    def append_known(self) -> None:
        before = self.log.log_end_offset
        self.append(producer_id=9, epoch=0, sequence=self.sequence)
        self.sequence += self.log.log_end_offset - before

    def append_by_coordinator(self) -> None:
        self.log.append(
            batch(b"first", b"second"), leader_epoch=LeaderEpoch(self.epoch), origin=AppendOrigin.COORDINATOR
        )

    def append_replicated(self) -> None:
        """Batches of another leader, with its offsets and epochs; compaction there has left holes."""
        next_offset = self.log.log_end_offset
        data = bytearray()
        for _ in range(self.random.randrange(1, 4)):
            self.at_ms += self.random.choice([0, 3, 400])
            self.epoch += self.random.choice([0, 0, 1])
            one = batch(b"first", self.random.randbytes(60), timestamp_ms=self.at_ms).data
            next_offset += self.random.choice([0, 0, 0, 7])
            patch(one, 0, base_offset=next_offset, leader_epoch=LeaderEpoch(self.epoch))
            next_offset += 2
            data += one
        appended = self.log.append(
            accept(bytes(data)), leader_epoch=LeaderEpoch(-1), origin=AppendOrigin.REPLICATION
        )
        assert isinstance(appended, Appended)
        assert appended.last_offset == next_offset - 1 == self.log.log_end_offset - 1
        self.seen.append(appended)

    def new_epoch(self) -> None:
        self.epoch += 1

    def truncate(self) -> None:
        offset = self.random.randrange(max(0, self.log.log_end_offset - 40), self.log.log_end_offset + 1)
        self.log.cutting.truncate_to(offset)
        known = dict(self.log.producers).get(9)
        self.sequence = 0 if known is None or not known.batches else known.batches[-1].last_sequence + 1

    def configure(self) -> None:
        self.log.state.update_config(self.random.choice(SETTINGS))

    def roll(self) -> None:
        self.log.sync.roll()

    def retain(self) -> None:
        self.log.state.set_high_watermark(self.log.log_end_offset)
        self.log.cutting.delete_records(
            self.random.randint(self.log.log_start_offset, self.log.log_end_offset)
        )
        self.log.cutting.apply_retention(self.clock.wall_ms(), only_below_start=True)

    def restart(self) -> None:
        start, config, end = self.log.log_start_offset, self.log.config, self.log.log_end_offset
        self.log.close()
        self.log = open_log(
            self.disk, self.clock, config=config, clean=True, recovery_point=end, log_start_offset=start
        )

    def end(self) -> Outcome:
        self.log.close()
        paths = [f"{DIRECTORY}/{name}" for name in self.disk.list(DIRECTORY)]
        return {path: self.disk.read(path) for path in paths}, self.seen


def lived(seed: int) -> Outcome:
    life = Life(seed)
    for _ in range(STEPS):
        life.step()
    return life.end()


@pytest.mark.parametrize("seed", range(12))
def test_the_files_are_the_same_with_and_without_it(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    write = Segment.write_within_headroom

    def counting(self: Segment, data: ReadableBuffer, last_offset: int, timestamp_ms: int) -> None:
        taken.append(last_offset)
        write(self, data, last_offset, timestamp_ms)

    monkeypatch.setattr(Segment, "write_within_headroom", counting)
    with_headroom = lived(seed)
    assert len(taken) > STEPS // 20
    monkeypatch.setattr(Segment, "renew_headroom", lambda *_: None)
    taken.clear()
    without = lived(seed)
    assert not taken
    assert with_headroom[1] == without[1]
    assert with_headroom[0] == without[0]


def _keep_headroom_in(where: type, name: str, segment_of: Callable[[Any], Segment]) -> pytest.MonkeyPatch:
    """Break a method that should forget the headroom of a segment."""
    method, patch = getattr(where, name), pytest.MonkeyPatch()

    def keeping(self: Any, *rest: object, **named: object) -> object:
        segment = segment_of(self)
        headroom = segment.headroom
        result = method(self, *rest, **named)
        segment.headroom = headroom
        return result

    patch.setattr(where, name, keeping)
    return patch


def test_a_headroom_that_a_truncation_does_not_end_is_found() -> None:
    expected = [lived(seed) for seed in range(12)]
    broken = [
        _keep_headroom_in(Segment, "truncate_at", lambda segment: segment),
        _keep_headroom_in(SegmentList, "take_after", lambda segments: segments.active),
    ]
    try:
        assert [lived(seed) for seed in range(12)] != expected
    finally:
        for patch in broken:
            patch.undo()


def test_a_headroom_that_other_settings_do_not_end_is_found() -> None:
    expected = [lived(seed) for seed in range(12)]
    broken = _keep_headroom_in(LogState, "update_config", lambda state: state.segments.active)
    try:
        assert [lived(seed) for seed in range(12)] != expected
    finally:
        broken.undo()
