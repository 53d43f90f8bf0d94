"""Producer state against a simple reference, and against itself after a restart of any kind."""

from dataclasses import dataclass, field

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from riverlog.model.config.slices import LogConfig
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch
from riverlog.storage.log.appends import Appended, AppendOrigin, Duplicate, Refused
from riverlog.storage.log.log import Log
from riverlog.testing.simulated_disk import SimulatedDisk
from tests.storage.checks import dump_producers, replayed
from tests.storage.logs import START_MS, ManualClock, append, batch, marker, open_log

SEQUENCES = 2**31
CONFIG = LogConfig(segment_bytes=900, index_interval_bytes=200)


@dataclass
class Reference:
    """One producer, written as plainly as can be."""

    epoch: int
    window: list[tuple[int, int, int]] = field(default_factory=list)
    """First and last sequence and first offset of the last five batches."""
    transaction_start: int | None = None


class ProducerModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.disk = SimulatedDisk()
        self.clock = ManualClock()
        self.producers: dict[int, Reference] = {}
        self.aborted: list[tuple[int, int]] = []
        self.log: Log

    @initialize()
    def open(self) -> None:
        self.log = open_log(self.disk, self.clock, config=CONFIG)

    @rule(
        producer_id=st.integers(min_value=0, max_value=2),
        epoch_step=st.sampled_from([-1, 0, 0, 0, 0, 1]),
        sequence_step=st.sampled_from([0, 0, 0, 0, 1, -1, -2, -5, -9]),
        count=st.integers(min_value=1, max_value=3),
        transactional=st.booleans(),
        near_the_end=st.booleans(),
    )
    def send(
        self,
        producer_id: int,
        epoch_step: int,
        sequence_step: int,
        count: int,
        transactional: bool,
        near_the_end: bool,
    ) -> None:
        known = self.producers.get(producer_id)
        epoch = max((known.epoch if known else 0) + epoch_step, 0)
        following = (known.window[-1][1] + 1) % SEQUENCES if known and known.window else 0
        if known is None and near_the_end:
            following = SEQUENCES - 2
        sequence = (following + sequence_step) % SEQUENCES
        accepted = batch(
            *[b"v"] * count,
            producer_id=producer_id,
            epoch=epoch,
            sequence=sequence,
            transactional=transactional,
        )
        outcome = self.log.append(accepted, leader_epoch=LeaderEpoch(0))
        self._compare(producer_id, epoch, sequence, count, transactional, outcome)

    def _compare(
        self,
        producer_id: int,
        epoch: int,
        sequence: int,
        count: int,
        transactional: bool,
        outcome: Appended | Duplicate | Refused,
    ) -> None:
        last = (sequence + count - 1) % SEQUENCES
        known = self.producers.get(producer_id)
        if known is not None:
            repeated = [entry for entry in known.window if entry[:2] == (sequence, last)]
            if epoch == known.epoch and repeated:
                assert isinstance(outcome, Duplicate)
                assert outcome.first_offset in [entry[2] for entry in repeated]
                return
            expected = (known.window[-1][1] + 1) % SEQUENCES if epoch == known.epoch and known.window else 0
            error = None
            if epoch < known.epoch:
                error = ErrorCode.INVALID_PRODUCER_EPOCH
            elif sequence != expected:
                error = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            elif known.transaction_start is not None and not transactional:
                error = ErrorCode.INVALID_TXN_STATE
            if error is not None:
                assert isinstance(outcome, Refused)
                assert outcome.error is error
                return
        assert isinstance(outcome, Appended)
        if known is None:
            known = self.producers[producer_id] = Reference(epoch)
        if epoch != known.epoch:
            known.epoch, known.window = epoch, []
        known.window = [*known.window, (sequence, last, outcome.first_offset)][-5:]
        if transactional and known.transaction_start is None:
            known.transaction_start = outcome.first_offset

    @rule(producer_id=st.integers(min_value=0, max_value=2), commit=st.booleans())
    def end_transaction(self, producer_id: int, commit: bool) -> None:
        known = self.producers.get(producer_id)
        if known is None:
            return
        append(
            self.log,
            marker(producer_id, epoch=known.epoch, commit=commit, timestamp_ms=START_MS + 1),
            origin=AppendOrigin.COORDINATOR,
        )
        if known.transaction_start is not None and not commit:
            self.aborted.append((producer_id, known.transaction_start))
        known.transaction_start = None

    @rule()
    def roll(self) -> None:
        self.log.sync.roll()

    @rule(how=st.sampled_from(["clean", "kill", "power"]), seed=st.integers(min_value=0, max_value=99))
    def restart(self, how: str, seed: int) -> None:
        point = self.log.flushed_offset
        if how == "clean":
            self.log.close()
            point = self.log.log_end_offset
        elif how == "power":
            self.log.sync.flush()
            point = self.log.flushed_offset
        if how == "kill":
            self.disk.kill()
        else:
            self.disk.crash(seed)
        self.log = open_log(self.disk, self.clock, config=CONFIG, clean=how == "clean", recovery_point=point)

    @invariant()
    def the_state_is_that_of_a_full_replay(self) -> None:
        if not hasattr(self, "log"):
            return
        assert dump_producers(self.log.producers) == dump_producers(replayed(self.log)[0])
        self.log.state.set_high_watermark(self.log.log_end_offset)
        open_since = [
            known.transaction_start
            for known in self.producers.values()
            if known.transaction_start is not None
        ]
        assert self.log.last_stable_offset == min(open_since, default=self.log.log_end_offset)
        assert self.log.aborted_transactions(0, self.log.log_end_offset) == self.aborted


TestProducerModel = ProducerModel.TestCase
TestProducerModel.settings = settings(
    max_examples=150, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
)
