"""What the driver does with an epoch: fence, decide, end what was decided, abort what was not.

The order is what makes it safe. First the query's own transactional id is taken over, so that from then on
no other driver can decide and everything decided so far can be read. Then what a driver before has decided
and not ended is ended. Then the decision is written, if all that goes into it is still open; then each of its
transactions is committed; then what is open and not part of it is aborted. Killed anywhere in between, the
next run of the epoch finds the decision and ends it, or finds none and writes again.

The steps are methods of their own so that tests can stop a driver between them.
"""

import logging
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from riverlog.client.cluster import BrokerRefused, Cluster, ClusterUnreachable
from riverlog.client.core.versions import UnsupportedApiError
from riverlog.client.open_transactions import describe, list_open, open_in, questions_for_open
from riverlog.client.transaction_dialect import Dialect, dialect_of
from riverlog.client.transactions import TransactionEndedOtherwise, commit_all, end, fence_and_abort
from riverlog.model.errors import RiverlogError
from riverlog.spark.sink.decisions import (
    Contents,
    Decider,
    Decision,
    DriverFenced,
    Written,
    create_topic,
    decision_log,
    task_prefix,
)
from riverlog.spark.sink.kept_deciders import keep_decider, kept_decider
from riverlog.spark.sink.slots import only_of, run_prefix
from riverlog.spark.sink.tasks import TaskWrote

_log = logging.getLogger(__name__)
_NAMED_MAX: Final = 5
_LOOK_AGAIN_S: Final = 0.3
_BROKERS_AGE_S_MAX: Final = 5.0
TASKS_END_WITHIN_S: Final = 3.0
"""Longer than Spark gives a task to end by itself; it asks for an abort while it still kills them."""


class EpochLost(RiverlogError):  # noqa: N818 - named for what it is
    """What was decided to be committed has been aborted by somebody else; rows are missing."""


class EpochUndecided(RiverlogError):  # noqa: N818 - named for what it is
    """The epoch could not be decided; nothing of it is visible, and running it again is safe."""


class NameUsedBefore(RiverlogError):  # noqa: N818 - named for what it is
    """A `writeId` that names another write already."""


class CheckpointRewound(RiverlogError):  # noqa: N818 - named for what it is
    """The query repeats an epoch that is long over."""


@dataclass(slots=True)
class EpochCommit:
    """One epoch of one run of a query, or the one epoch of a batch write."""

    cluster: Cluster
    identity: str
    run: str
    epoch: int
    messages: Sequence[TaskWrote]
    is_stream: bool
    accepted_epoch: int | None = None
    """An epoch whose loss is known, and no reason to stop any more."""
    _dialect: Dialect | None = None
    _decider: Decider | None = None
    _seen_open: set[str] | None = None
    """What was open after the decision, where that is known already."""

    def commit(self) -> None:
        if not any(each.written or each.is_skipped for each in self.messages):
            return
        if not self._goes_on():
            self.fence()
            if self._is_over():
                return
            self.finish_before()
            self.decide()
        self.finish(self._written)
        self.sweep()
        keep_decider(self.decider)

    def _goes_on(self) -> bool:
        """Whether this process decided an epoch before, of the same run, and could decide this one as well.

        Then all is known and ended. Should the id have been taken over since, the decision fails: by another
        driver, which is the end of this one; or, which the log tells, by another process of this driver, as
        Spark has any of its idle workers commit.
        """
        if self.is_stream and not any(each.is_skipped for each in self.messages):
            self._decider = kept_decider(self.cluster, self.identity, self.run, self.epoch)
        if self._decider is None:
            return False
        known = self._decider.log.newest
        try:
            self.decide()
        except DriverFenced:
            newest = self._decider.log.refresh()
            if newest is None or newest == known or newest.run != self.run:
                raise
            return False
        return True

    def _is_over(self) -> bool:
        """Whether the epoch was decided before; it is ended then."""
        decided = self.decider.log.newest
        if decided is not None and decided.epoch > self.epoch:
            self._abort_own()
            raise CheckpointRewound(
                f"{self._named} is decided already, and so is epoch {decided.epoch}. Either another driver "
                "runs this query from the same checkpoint, and one of the two must stop; or the checkpoint "
                "is older than what was written: give the query a new one, or bring the newer one back"
            )
        if decided is not None and decided.epoch == self.epoch:
            self._repeat(decided)
            return True
        if any(each.is_skipped for each in self.messages):
            raise EpochUndecided(f"{self._named} was found decided by a task and is not; run it again")
        return False

    def abort(self, *, tasks_end_within_s: float = 0.0) -> None:
        """End what this run has left, unless it was decided; also what tasks leave that are being killed."""
        self.fence()
        self.end_leftovers(tasks_end_within_s)

    def end_leftovers(self, tasks_end_within_s: float) -> None:
        decided = self.decider.log.newest
        if decided is not None and decided.run == self.run and decided.epoch == self.epoch:
            self.finish(decided.transactions)
        self._abort_own()
        deadline = time.monotonic() + tasks_end_within_s
        while time.monotonic() < deadline:
            time.sleep(_LOOK_AGAIN_S)
            self._abort_open(run_prefix(self.identity, self.run), self._decided_by_this_run())

    # The steps.

    def fence(self) -> None:
        """From here on no other driver of this identity decides anything."""
        create_topic(self.cluster)
        log = decision_log(self.cluster, self.identity)
        if log is None:
            raise EpochUndecided(f"{self._named}: the topic of decisions is gone; run it again")
        self._decider = Decider.take(self.cluster, self.dialect, log)

    def finish_before(self) -> None:
        """Commit what a run before has decided and not ended.

        Spark has gone on to this epoch, so there is hardly ever anything; what is not open any more is ended.
        """
        before = self.decider.log.newest
        if before is not None and before.run != self.run:
            self.finish(self._still_open(before.transactions))

    def decide(self) -> None:
        """Write the decision, if everything that goes into it is there."""
        gone = set(self._written) - set(self._still_open(self._written))
        if gone:
            self._abort_own()
            raise EpochUndecided(
                f"{self._named}: {_names(gone)} ended before the decision, by its timeout or by somebody's "
                "hand; nothing was committed, and running the epoch again is safe"
            )
        self.decider.decide(self.decision())

    def finish(self, decided: Sequence[Written]) -> None:
        """Commit each transaction; again does no harm. What is open is asked for at the same time."""
        ended = [(each.transactional_id, each.producer) for each in decided]
        also = questions_for_open(self.cluster, brokers_age_s_max=_BROKERS_AGE_S_MAX)
        try:
            names, answers = commit_all(self.cluster, ended, self.dialect, also)
        except UnsupportedApiError:
            # It cannot list transactions, which `sweep` says.
            names, answers = commit_all(self.cluster, ended, self.dialect)[0], [None]
        self._seen_open = open_in(answers, task_prefix(self.identity))
        lost = [each for each in decided if each.transactional_id in names]
        if lost and self.accepted_epoch == self.epoch:
            _log.warning("%s goes on without the rows of %s, as asked for", self._named, _names(lost))
        elif lost:
            raise EpochLost(
                f"{self._named} is decided, but {len(lost)} of its {len(decided)} transactions were ended by "
                f"the broker before they could be committed: {_names(lost)}. Their rows are missing. Without "
                "two-phase commit that happens when a driver is away longer than the transaction timeout: "
                "raise the broker's transaction.max.timeout.ms, write the missing rows again by hand, "
                f"and start the query once with the option acceptLostEpoch={self.epoch}"
            )

    def sweep(self) -> None:
        """Abort what tasks of this identity have left open, in whatever run.

        The epoch is committed by now: what cannot be reached is left to the next one.
        """
        newest = self.decider.log.newest
        kept = set() if newest is None else {each.transactional_id for each in newest.transactions}
        seen, self._seen_open = self._seen_open, None
        try:
            self._abort_open(task_prefix(self.identity), kept, seen)
        except (BrokerRefused, ClusterUnreachable) as error:
            _log.warning("what tasks of %s left open is aborted later: %s", self._named, error)

    # What they are made of.

    def decision(self) -> Decision:
        contents = None if self.is_stream else self._contents
        return Decision(self.identity, self.epoch, self.run, self._written, contents)

    @property
    def decider(self) -> Decider:
        assert self._decider is not None, "fence first"
        return self._decider

    @property
    def dialect(self) -> Dialect:
        if self._dialect is None:
            self._dialect = dialect_of(self.cluster)
        return self._dialect

    @property
    def _named(self) -> str:
        return f"epoch {self.epoch} of query {self.identity}" if self.is_stream else f"write {self.identity}"

    @property
    def _written(self) -> tuple[Written, ...]:
        return tuple(each.written for each in self.messages if each.written is not None)

    @property
    def _contents(self) -> Contents:
        topics = frozenset().union(*(each.rows.topics for each in self.messages))
        return Contents(sum(each.rows.count for each in self.messages), topics)

    def _compare(self, before: Contents) -> None:
        """A write of a name that was used is passed over; somebody may have meant another one by it."""
        now = self._contents
        if others := sorted(now.topics - before.topics):
            raise NameUsedBefore(
                f"{self._named} was done before, with rows for {', '.join(sorted(before.topics))}; "
                f"this one has rows for {', '.join(others)}. Nothing was written: give another writeId to "
                "what is another write"
            )
        if now.record_count != before.record_count:
            _log.warning(
                "%s was done before, with %d rows; this time it has %d, of which none was written. "
                "Give another writeId to what is another write",
                self._named,
                before.record_count,
                now.record_count,
            )

    def _repeat(self, decided: Decision) -> None:
        """The epoch is decided: end it, and drop what was written again."""
        if decided.run == self.run or not self._written or not self.is_stream:
            self._abort_own(keep=decided.transactions)
            self.finish(decided.transactions)
            if not self._written:
                self.sweep()
            if decided.run != self.run and decided.contents is not None:
                self._compare(decided.contents)
            return
        self._abort_own()
        raise DriverFenced(
            f"{self._named} was decided by another driver while this one wrote it; this one stops, "
            "and nothing that it wrote stays"
        )

    def _still_open(self, transactions: Sequence[Written]) -> list[Written]:
        views = describe(self.cluster, [each.transactional_id for each in transactions])
        return [
            each
            for each in transactions
            if (view := views.get(each.transactional_id)) is not None
            and view.is_open
            and view.producer == each.producer
        ]

    def _abort_own(self, keep: Sequence[Written] = ()) -> None:
        """What tasks of this run have left, also those that nobody told of."""
        kept = {each.transactional_id for each in keep} | self._decided_by_this_run()
        self._abort_told(kept)
        self._abort_open(run_prefix(self.identity, self.run), kept)

    def _abort_told(self, kept: Collection[str] = ()) -> None:
        for each in self._written:
            if each.transactional_id not in kept:
                try:
                    end(self.cluster, each.transactional_id, each.producer, self.dialect, commit=False)
                except TransactionEndedOtherwise as error:
                    _log.info("nothing to abort: %s", error)

    def _decided_by_this_run(self) -> set[str]:
        newest = self.decider.log.newest
        if newest is None or newest.run != self.run:
            return set()
        return {each.transactional_id for each in newest.transactions}

    def _abort_open(self, prefix: str, kept: set[str], seen: set[str] | None = None) -> None:
        try:
            listed = list_open(self.cluster, prefix) if seen is None else seen
        except UnsupportedApiError:
            _log.warning("the broker cannot list transactions; those of tasks that were killed time out")
            return
        found = only_of(self.identity, listed) - kept
        for name in sorted(found):
            fence_and_abort(self.cluster, name)
        if found:
            _log.warning("aborted %d transactions that tasks of %s had left open", len(found), self._named)


def _names(transactions: Sequence[Written] | set[Written]) -> str:
    names = sorted(each.transactional_id for each in transactions)
    more = f" and {len(names) - _NAMED_MAX} more" if len(names) > _NAMED_MAX else ""
    return f"transaction {', '.join(names[:_NAMED_MAX])}{more}"
