"""Identities for batch writes that nobody repeats: a few for each process that plans them, used again.

A coordinator keeps a transactional id for days, and an identity has ids for its driver and its tasks; so one
made anew for every write would fill it. A lane is an identity whose epochs are the writes that the planning
process which holds its name has given it, one after the other. The log of decisions says what goes on in it:

- a write has begun: written under the driver's id before any task runs;
- it is decided: which transactions it is, none of them if it is given up;
- nothing any more: all that was decided is committed, all else aborted, and the lane is free.

A lane that is not free is left alone, for good if its driver is gone, and another one is begun. So one write
at a time uses a lane's ids, and no other process hands them out. A task that comes too late finds that its
write is decided without it, or over, or that another one has begun, and aborts what it wrote.
"""

import time
from dataclasses import dataclass
from typing import Final

from riverlog.client.cluster import Cluster
from riverlog.client.transaction_dialect import dialect_of
from riverlog.spark.sink.commit import EpochCommit, EpochUndecided
from riverlog.spark.sink.decisions import Decider, Decision, create_topic, decision_log
from riverlog.spark.sink.held_names import held_name

_VISIBLE_WITHIN_S: Final = 30.0
_LOOK_AGAIN_S: Final = 0.005


@dataclass(frozen=True, slots=True)
class Lane:
    """Which one, and the number of the write in it."""

    identity: str
    run: str
    """The same for all writes of a lane, so that tasks use their transactional ids again."""
    epoch: int


def take_lane(cluster: Cluster) -> Lane:
    """Begin a write in a lane whose last write is over, or in a new one."""
    create_topic(cluster)
    held = held_name("lanes", *(f"{host}:{port}" for host, port in cluster.settings.bootstrap))
    number = 0
    while number < len(held.epochs):
        log = decision_log(cluster, _identity(held.name, number))
        if log is not None and log.refresh() is None:
            break
        number += 1
    epoch = held.epochs[number] + 1 if number < len(held.epochs) else 0
    number = held.use(number, epoch)
    return _begun(cluster, Lane(_identity(held.name, number), held.name, epoch))


def _identity(name: str, number: int) -> str:
    return f"batch-{name}-{number}"


def _begun(cluster: Cluster, lane: Lane) -> Lane:
    log = decision_log(cluster, lane.identity, is_same_topic=True)
    if log is None:
        raise EpochUndecided("the topic of decisions is gone; run the write again")
    beginning = Decision(lane.identity, lane.epoch, lane.run, (), is_begun=True)
    Decider.take(cluster, dialect_of(cluster), log).decide(beginning)
    # Tasks take a lane without a record for one that is free, and a coordinator may write markers later.
    deadline = time.monotonic() + _VISIBLE_WITHIN_S
    while log.refresh() != beginning:
        if time.monotonic() > deadline:
            raise EpochUndecided(f"the beginning of {lane.identity} is not in the log; run the write again")
        time.sleep(_LOOK_AGAIN_S)
    return lane


class LaneCommit(EpochCommit):
    """The end of a write in a lane, after which the lane is free."""

    def commit(self) -> None:
        self.fence()
        newest = self.decider.log.newest
        if newest is None or newest.epoch != self.epoch or any(each.is_skipped for each in self.messages):
            self._abort_told()
            raise EpochUndecided(f"{self._named} was ended by somebody else; run it again")
        if newest.is_begun:
            self.decide()
        self.finish_and_free()

    def abort(self, *, tasks_end_within_s: float = 0.0) -> None:
        self.fence()
        newest = self.decider.log.newest
        if newest is None or newest.epoch != self.epoch:
            # It was committed to the end, only Spark has not heard of it. Another write may use the lane now.
            return
        if newest.is_begun:
            # For tasks that are still to come.
            self.decider.decide(Decision(self.identity, self.epoch, self.run, ()))
        self.end_leftovers(tasks_end_within_s)
        self.decider.forget()

    def finish_and_free(self) -> None:
        newest = self.decider.log.newest
        assert newest is not None, "decided"
        self.finish(newest.transactions)
        self.sweep()
        self.decider.forget()

    @property
    def _named(self) -> str:
        return f"write {self.epoch} of {self.identity}"
