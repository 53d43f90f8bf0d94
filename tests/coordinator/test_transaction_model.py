"""Any order of requests, repetitions, crashes and time-outs, against a simple model.

The model knows who owns the transactional id and which partitions are open, and nothing of epochs or states.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from riverlog.coordinator.transactions.shard import Initialised
from riverlog.coordinator.transactions.states import TransactionState
from riverlog.coordinator.transactions.transaction import (
    EPOCH_MAX,
    NO_TIMEOUT_MS,
    VERSION_1,
    VERSION_2,
    Transaction,
)
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerIdAndEpoch, TopicPartition
from tests.coordinator.transaction_bench import NAME, TIMEOUT_MS, Bench

PARTITIONS = [TopicPartition("orders", index) for index in range(3)]
VERSIONS = st.sampled_from([VERSION_1, VERSION_2])
OUTSIDER = ProducerIdAndEpoch(9_999, 0)


class TransactionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench(completes=True)
        self.seen: list[ProducerIdAndEpoch] = [OUTSIDER]
        self.owner: ProducerIdAndEpoch | None = None
        self.open: frozenset[TopicPartition] | None = None
        self.is_kept = False
        self.is_two_phase = False
        self.ended: list[tuple[frozenset[TopicPartition], bool]] = []

    @initialize(epoch=st.sampled_from([0, EPOCH_MAX - 4, EPOCH_MAX - 2, EPOCH_MAX - 1]))
    def begin_near_the_last_epoch(self, epoch: int) -> None:
        present = ProducerIdAndEpoch(50, epoch)
        self.bench.put(Transaction(NAME, TransactionState.EMPTY, present, TIMEOUT_MS, self.bench.now_ms))
        self.seen.append(present)
        self.owner = present

    @rule(two_phase=st.booleans())
    def take_over(self, two_phase: bool) -> None:
        answer = self.bench.init(timeout_ms=NO_TIMEOUT_MS if two_phase else TIMEOUT_MS)
        if self.open is None:
            self._own(answer)
            self.is_two_phase = two_phase
        else:
            assert answer is ErrorCode.CONCURRENT_TRANSACTIONS
            self._end(commit=False)
            self.owner = None

    @rule()
    def take_over_and_keep(self) -> None:
        answer = self.bench.init(keep=True)
        assert isinstance(answer, Initialised)
        assert (answer.ongoing is not None) == (self.open is not None)
        self.is_kept = self.open is not None
        self.is_two_phase = self.is_two_phase and self.is_kept
        self._own(answer)

    @precondition(lambda self: self.owner is not None and self.open is None)
    @rule()
    def begin_anew_with_the_identity_it_had(self) -> None:
        self._own(self.bench.init(self.owner))
        self.is_two_phase = False

    @rule(
        data=st.data(), partition=st.sampled_from(PARTITIONS), version=st.sampled_from([VERSION_1, VERSION_2])
    )
    def add(self, data: st.DataObject, partition: TopicPartition, version: int) -> None:
        producer = data.draw(st.sampled_from(self.seen))
        answer = self.bench.add(producer, partition, version=version)
        if producer != self.owner:
            assert answer in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        elif self.is_kept:
            assert answer is ErrorCode.INVALID_TXN_STATE
        else:
            assert answer is None
            self.open = (self.open or frozenset()) | {partition}

    @rule(data=st.data(), commit=st.booleans(), version=VERSIONS)
    def end(self, data: st.DataObject, commit: bool, version: int) -> None:
        producer = data.draw(st.sampled_from(self.seen))
        answer = self.bench.end(producer, commit=commit, version=version)
        if producer != self.owner:
            return  # Late or foreign: the invariants say that it has changed nothing.
        if self.open is not None:
            assert isinstance(answer, ProducerIdAndEpoch)
            self._end(commit=commit)
        if isinstance(answer, ProducerIdAndEpoch):
            if version == VERSION_2:
                assert answer not in self.seen, "each end of version 2 makes a new identity"
            self.seen.append(answer)
            self.owner = answer

    @rule()
    def run_out_of_time(self) -> None:
        self.bench.pass_time(TIMEOUT_MS + 1)
        if self.open is not None and not self.is_two_phase:
            self._end(commit=False)
            self.owner = None
        if self.bench.transaction is None:
            self.owner = None  # Not used for so long that the id was forgotten.

    @rule(during_end=st.booleans())
    def crash(self, during_end: bool) -> None:
        if during_end and self.owner is not None and self.open is not None:
            self.bench.completes = False
            answer = self.bench.end(self.owner, commit=True, version=VERSION_2)
            assert isinstance(answer, ProducerIdAndEpoch)
            self._end(commit=True)
            self.owner = answer
            self.seen.append(answer)
        self.bench.reload()
        self.bench.completes = True
        self.bench.pass_time(0)

    @invariant()
    def every_transaction_has_ended_once_in_each_of_its_partitions(self) -> None:
        expected = [(each, commit) for partitions, commit in self.ended for each in sorted(partitions)]
        assert [(each, commit) for each, _, commit in self.bench.markers] == expected

    @invariant()
    def what_is_open_is_what_was_added(self) -> None:
        transaction = self.bench.transaction
        if transaction is None:
            assert self.open is None
            return
        is_open = transaction.state is TransactionState.ONGOING
        assert (transaction.partitions if is_open else None) == self.open
        if self.owner is not None:
            assert transaction.client == self.owner

    def _own(self, answer: object) -> None:
        assert isinstance(answer, Initialised)
        assert answer.producer not in self.seen, "nobody has had this identity before"
        self.seen.append(answer.producer)
        self.owner = answer.producer

    def _end(self, *, commit: bool) -> None:
        assert self.open is not None
        self.ended.append((self.open, commit))
        self.open = None
        self.is_kept = False


TransactionMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
test_any_order_of_requests_agrees_with_the_model = TransactionMachine.TestCase
