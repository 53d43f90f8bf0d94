"""A compacted log against a list and a dict, whatever is done to it and whenever it is cleaned."""

from contextlib import closing
from dataclasses import dataclass

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from riverlog.records.compression import Codec
from riverlog.storage.cleaning.cleaning import Bounds
from riverlog.storage.inspect import Finding, verify
from riverlog.storage.log.appends import AppendOrigin
from riverlog.storage.log.log import Log
from riverlog.testing.simulated_disk import SimulatedDisk
from tests.storage.cleaning.compaction import CONFIG, begin_cleaning, headers, keyed, table
from tests.storage.logs import ManualClock, append, marker, open_log, read_all

KEYS = st.sampled_from([b"a", b"b", b"c", b"d", b"a key that is longer than a digest"])
PAIRS = st.lists(st.tuples(KEYS, st.none() | st.binary(max_size=60)), min_size=1, max_size=4)
PRODUCERS = (1, 2, 3)


@dataclass(frozen=True)
class Sent:
    offset: int
    key: bytes
    value: bytes | None
    producer_id: int | None


class CompactionModel(RuleBasedStateMachine):
    """`sent` is everything ever written; `open` and `aborted` say which of it counts."""

    def __init__(self) -> None:
        super().__init__()
        self.disk = SimulatedDisk()
        self.clock = ManualClock()
        self.sent: dict[int, Sent] = {}
        self.open: dict[int, list[int]] = {}
        self.aborted: set[int] = set()
        self.sequences = dict.fromkeys(PRODUCERS, 0)
        self.log: Log

    @initialize()
    def begin(self) -> None:
        self.log = open_log(self.disk, self.clock, config=CONFIG)

    @rule(pairs=PAIRS, codec=st.sampled_from([Codec.NONE, Codec.LZ4, Codec.ZSTD]))
    def write(self, pairs: list[tuple[bytes, bytes | None]], codec: Codec) -> None:
        first = append(self.log, keyed(*pairs, codec=codec, timestamp_ms=self.clock.now_ms)).first_offset
        self._note(first, pairs, None)

    @rule(pairs=PAIRS, producer_id=st.sampled_from(PRODUCERS))
    def write_in_transaction(self, pairs: list[tuple[bytes, bytes | None]], producer_id: int) -> None:
        batch = keyed(
            *pairs,
            timestamp_ms=self.clock.now_ms,
            producer_id=producer_id,
            sequence=self.sequences[producer_id],
            transactional=True,
        )
        first = append(self.log, batch).first_offset
        self.sequences[producer_id] += len(pairs)
        self._note(first, pairs, producer_id)

    def _note(self, first: int, pairs: list[tuple[bytes, bytes | None]], producer_id: int | None) -> None:
        for offset, (key, value) in enumerate(pairs, first):
            self.sent[offset] = Sent(offset, key, value, producer_id)
            if producer_id is not None:
                self.open.setdefault(producer_id, []).append(offset)
        self.log.state.set_high_watermark(self.log.log_end_offset)

    @precondition(lambda self: self.open)
    @rule(number=st.integers(0, 2), commit=st.booleans())
    def end(self, number: int, commit: bool) -> None:
        producer_id = sorted(self.open)[number % len(self.open)]
        end = marker(producer_id, commit=commit, timestamp_ms=self.clock.now_ms)
        append(self.log, end, origin=AppendOrigin.COORDINATOR)
        offsets = self.open.pop(producer_id)
        if not commit:
            self.aborted.update(offsets)
        self.log.state.set_high_watermark(self.log.log_end_offset)

    @rule()
    def roll(self) -> None:
        self.log.sync.roll()

    @rule(ms=st.sampled_from([1, 400, 1500]))
    def wait(self, ms: int) -> None:
        self.clock.now_ms += ms

    @rule(
        map_bytes=st.sampled_from([600, 100_000]),
        written_meanwhile=st.lists(st.tuples(KEYS, st.binary(max_size=9)), max_size=3),
    )
    def clean(self, map_bytes: int, written_meanwhile: list[tuple[bytes, bytes | None]]) -> None:
        before, stable = self._seen_by_reader(), self.log.last_stable_offset
        untouched = [record for record in read_all(self.log) if record.offset >= stable]
        with closing(begin_cleaning(self.log, self.clock, Bounds(map_bytes=map_bytes)).steps()) as steps:
            for step in steps:
                step()
                if written_meanwhile:
                    pair = written_meanwhile.pop()
                    self.write([pair], Codec.NONE)
                    before = self._seen_by_reader()
        assert self._seen_by_reader() == before
        assert [r for r in read_all(self.log) if r.offset >= stable][: len(untouched)] == untouched

    @rule(clean=st.booleans(), seed=st.integers(0, 1000))
    def restart(self, clean: bool, seed: int) -> None:
        end, cleaned = self.log.log_end_offset, self.log.state.cleaned_offset
        point = self.log.flushed_offset
        if clean:
            self.log.close()
            point = end
            self.disk.crash(seed)
        else:
            self.disk.kill()
        self.log = open_log(
            self.disk, self.clock, config=CONFIG, clean=clean, recovery_point=point, cleaned_offset=cleaned
        )
        assert self.log.log_end_offset == end
        self.log.state.set_high_watermark(end)

    @invariant()
    def every_offset_holds_what_was_written_there(self) -> None:
        if not hasattr(self, "log"):
            return
        offsets = []
        for record in read_all(self.log):
            if (sent := self.sent.get(record.offset)) is not None:
                assert (record.key, record.value) == (sent.key, sent.value)
                offsets.append(record.offset)
        assert offsets == sorted(set(offsets))

    @invariant()
    def the_newest_of_each_key_is_there(self) -> None:
        if not hasattr(self, "log"):
            return
        newest: dict[bytes, Sent] = {}
        for sent in self.sent.values():
            is_open = sent.producer_id is not None and sent.offset in self.open.get(sent.producer_id, ())
            if sent.offset not in self.aborted and not is_open:
                newest[sent.key] = sent
        wanted = {sent.key: sent.value for sent in newest.values() if sent.value is not None}
        assert self._seen_by_reader() == wanted

    @invariant()
    def open_transactions_hold_back_the_last_stable_offset(self) -> None:
        if not hasattr(self, "log"):
            return
        first = min((offsets[0] for offsets in self.open.values()), default=self.log.log_end_offset)
        assert self.log.last_stable_offset == first

    @invariant()
    def files_are_sound(self) -> None:
        if hasattr(self, "log"):
            found = verify(self.disk, self.log.directory)
            assert not [each for each in found if isinstance(each, Finding)]

    def _seen_by_reader(self) -> dict[bytes, bytes]:
        """What a reader of committed records holds, who is told of aborted transactions as by a fetch."""
        aborted = sorted(
            self.log.aborted_transactions(0, self.log.log_end_offset), key=lambda entry: entry[1]
        )
        skipped: set[int] = set()
        active: set[int] = set()
        for header in headers(self.log):
            while aborted and aborted[0][1] <= header.last_offset:
                active.add(aborted.pop(0)[0])
            if header.is_control:
                active.discard(header.producer_id)
            elif header.is_transactional and header.producer_id in active:
                skipped.update(range(header.base_offset, header.next_offset))
        is_open = {offset for offsets in self.open.values() for offset in offsets}
        return table(
            record
            for record in read_all(self.log)
            if record.offset in self.sent and record.offset not in skipped and record.offset not in is_open
        )


CompactionModel.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestCompactionModel = CompactionModel.TestCase
