"""The log against a list: whatever is done to it, it holds what a simple reference holds."""

from dataclasses import dataclass

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from riverlog.model.config.slices import LogConfig
from riverlog.model.ids import LeaderEpoch
from riverlog.records.batch import walk
from riverlog.records.compression import Codec
from riverlog.storage.log.appends import OffsetOutOfRange
from riverlog.storage.log.log import Log
from riverlog.storage.log.segment_list import LogRead
from riverlog.testing.simulated_disk import SimulatedDisk
from tests.storage.checks import violations
from tests.storage.logs import START_MS, ManualClock, append, batch, open_log, read_all, slice_bytes

CONFIG = LogConfig(segment_bytes=800, index_interval_bytes=120, segment_index_bytes=400, retention_ms=None)


@dataclass(frozen=True)
class Sent:
    offset: int
    value: bytes
    timestamp_ms: int
    batch_start: int
    leader_epoch: int


class LogModel(RuleBasedStateMachine):
    """`sent` is the reference: every record that is in the log, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.disk = SimulatedDisk()
        self.clock = ManualClock()
        self.sent: list[Sent] = []
        self.start = 0
        self.end = 0
        self.epoch = 0
        self.log: Log

    @initialize()
    def open(self) -> None:
        self.log = open_log(self.disk, self.clock, config=CONFIG)

    @rule(
        values=st.lists(st.binary(max_size=120), min_size=1, max_size=4),
        timestamp=st.integers(min_value=0, max_value=5000),
        codec=st.sampled_from([Codec.NONE, Codec.GZIP, Codec.LZ4]),
    )
    def append(self, values: list[bytes], timestamp: int, codec: Codec) -> None:
        accepted = batch(*values, timestamp_ms=START_MS + timestamp, codec=codec)
        appended = append(self.log, accepted, leader_epoch=self.epoch)
        assert appended.first_offset == self.end
        for number, value in enumerate(values):
            self.sent.append(
                Sent(self.end + number, value, START_MS + timestamp + number, self.end, self.epoch)
            )
        self.end += len(values)

    @rule()
    def new_epoch(self) -> None:
        self.epoch += 1

    @rule()
    def roll(self) -> None:
        self.log.sync.roll()

    @rule(clean=st.booleans(), seed=st.integers(min_value=0, max_value=1000))
    def restart(self, clean: bool, seed: int) -> None:
        point = self.log.flushed_offset
        if clean:
            self.log.close()
            point = self.end
            self.disk.crash(seed)
        else:
            self.disk.kill()
        self.log = open_log(
            self.disk,
            self.clock,
            config=CONFIG,
            clean=clean,
            recovery_point=point,
            log_start_offset=self.start,
        )
        self.log.state.set_high_watermark(self.end)

    @rule()
    def flush(self) -> None:
        self.log.sync.flush()
        assert self.log.flushed_offset == self.end

    @precondition(lambda self: self.end > self.start)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(min_value=self.start, max_value=self.end))
        starts = {record.offset: record.batch_start for record in self.sent}
        self.log.cutting.truncate_to(offset)
        # A batch is never split, so the log ends where the batch that holds the offset begins.
        self.end = starts.get(offset, self.end)
        self.start = min(self.start, self.end)
        self.sent = [record for record in self.sent if record.offset < self.end]
        assert self.log.log_end_offset == self.end

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(min_value=self.start, max_value=self.end))
        self.log.state.set_high_watermark(self.end)
        assert self.log.cutting.delete_records(offset) == offset
        self.start = offset

    @rule(data=st.data(), max_bytes=st.integers(min_value=0, max_value=1500))
    def read(self, data: st.DataObject, max_bytes: int) -> None:
        offset = data.draw(st.integers(min_value=max(self.start - 1, 0), max_value=self.end + 1))
        end_offset = data.draw(st.integers(min_value=self.start, max_value=self.end))
        result = self.log.read(offset, max_bytes=max_bytes, end_offset=end_offset)
        if not self.start <= offset <= self.end:
            assert result == OffsetOutOfRange(self.start, self.end)
            return
        assert isinstance(result, LogRead)
        headers = [header for _, header in walk(slice_bytes(result))]
        assert sum(header.size_bytes for header in headers) == result.size_bytes
        readable = [record for record in self.sent if offset <= record.offset]
        if not readable or offset >= end_offset:
            assert headers == []
        elif headers:
            assert headers[0].base_offset == readable[0].batch_start
            assert all(header.last_offset < end_offset for header in headers)
            assert result.size_bytes <= max_bytes or len(headers) == 1
            assert headers[-1].last_offset < result.upper_offset <= self.end
            following = [record.offset for record in self.sent if record.offset > headers[-1].last_offset]
            assert result.upper_offset <= max(min(following, default=self.end), end_offset)
        else:
            assert any(record.offset >= end_offset for record in self._batch_of(readable[0]))

    def _batch_of(self, record: Sent) -> list[Sent]:
        return [other for other in self.sent if other.batch_start == record.batch_start]

    @rule(timestamp=st.integers(min_value=-1, max_value=5010))
    def look_up_a_timestamp(self, timestamp: int) -> None:
        found = self.log.offset_for_timestamp(START_MS + timestamp)
        expected = next(
            (
                record
                for record in self.sent
                if record.offset >= self.start and record.timestamp_ms >= START_MS + timestamp
            ),
            None,
        )
        if expected is None:
            assert found is None
        else:
            assert found is not None
            assert (found.offset, found.timestamp_ms) == (expected.offset, expected.timestamp_ms)
            assert found.leader_epoch == expected.leader_epoch

    @rule(data=st.data())
    def look_up_an_epoch(self, data: st.DataObject) -> None:
        epoch = data.draw(st.integers(min_value=0, max_value=self.epoch))
        visible = [record for record in self.sent if record.offset >= self.start]
        if epoch in {record.leader_epoch for record in visible}:
            later = [record.offset for record in visible if record.leader_epoch > epoch]
            assert self.log.end_offset_for_epoch(LeaderEpoch(epoch)) == (epoch, min(later, default=self.end))

    @invariant()
    def holds_what_was_sent(self) -> None:
        if not hasattr(self, "log"):
            return
        assert (self.log.log_start_offset, self.log.log_end_offset) == (self.start, self.end)
        kept = [(record.offset, record.value) for record in read_all(self.log, max_bytes=700)]
        assert kept == [(record.offset, record.value) for record in self.sent if record.offset >= self.start]

    def teardown(self) -> None:
        if hasattr(self, "log") and self.start == 0:
            self.log.close()
            assert violations(self.log, self.disk) == []


TestLogModel = LogModel.TestCase
TestLogModel.settings = settings(
    max_examples=150, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
)
