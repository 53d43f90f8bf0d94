"""Transactional ids for tasks: each is used by one process only, one task after the other.

A coordinator keeps a transactional id for days, so ids that are made anew for every task of every epoch would
fill it; and an id that another process may use, too, can be taken over by a late attempt of an old task,
which would abort what has been prepared since. So an id names the run of the query, the process and a slot,
and a process uses a slot again in a later epoch of the same run: Spark begins that only when the driver has
ended everything of the epoch before.
"""

import os
import secrets
from dataclasses import dataclass, field
from typing import Final

from riverlog.spark.sink.decisions import PREFIX, task_prefix

_RUNS_MAX: Final = 64
_RUN_LETTERS: Final = 12


@dataclass(slots=True)
class _Slots:
    """The last epoch of each slot of one run."""

    epochs: list[int] = field(default_factory=list)

    def take(self, epoch: int) -> int:
        for slot, last in enumerate(self.epochs):
            if last < epoch:
                self.epochs[slot] = epoch
                return slot
        self.epochs.append(epoch)
        return len(self.epochs) - 1


@dataclass(slots=True)
class _Process:
    pid: int
    name: str
    runs: dict[tuple[str, str], _Slots] = field(default_factory=dict)


_process = _Process(0, "")


def run_prefix(identity: str, run: str) -> str:
    """What the transactional ids of one run begin with."""
    return f"{task_prefix(identity)}{run.replace('-', '')[:_RUN_LETTERS]}-"


def take_transactional_id(identity: str, run: str, epoch: int, tag: str | None = None) -> str:
    """One that no other process uses, nor another task of this epoch; its end tells the query's options."""
    process = _this_process()
    slots = process.runs.pop((identity, run), None) or _Slots()
    process.runs[(identity, run)] = slots
    while len(process.runs) > _RUNS_MAX:
        del process.runs[next(iter(process.runs))]
    end = "" if tag is None else tag_suffix(tag)
    return f"{run_prefix(identity, run)}{process.name}-{slots.take(epoch)}{end}"


def tag_suffix(tag: str) -> str:
    return f"-{tag}"


def identity_of(transactional_id: str) -> str:
    """The query, or batch write, that a task's transactional id belongs to."""
    return transactional_id.removeprefix(f"{PREFIX}/").rpartition("/")[0]


def is_first_epoch(identity: str, run: str, epoch: int) -> bool:
    """Whether this process has seen no earlier epoch of the run, so that it may be a repetition."""
    slots = _this_process().runs.get((identity, run))
    return slots is None or not any(last < epoch for last in slots.epochs)


def process_name() -> str:
    """Of this process alone, and the same for as long as it lives."""
    return _this_process().name


def _this_process() -> _Process:
    # Workers are forked from a daemon: a name made before would be shared.
    global _process
    if _process.pid != os.getpid():
        _process = _Process(os.getpid(), secrets.token_hex(6))
    return _process
