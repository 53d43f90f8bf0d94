"""Transactional ids for tasks: each is used by one process at a time, one task after the other.

A coordinator keeps a transactional id for days, so ids that are made anew for every task of every epoch would
fill it; and an id that another process may use, too, can be taken over by a late attempt of an old task,
which would abort what has been prepared since. So an id names the run of the query, a name that this process
alone holds while it lives, and a slot. A slot is used again in a later epoch of the same run, by this process
or by the one that holds the name when this one has ended: Spark begins that epoch only when the driver has
ended everything of the one before.
"""

from collections.abc import Iterable
from typing import Final

from riverlog.client.cluster import Cluster
from riverlog.client.open_transactions import list_open
from riverlog.spark.sink.decisions import PREFIX, task_prefix
from riverlog.spark.sink.held_names import held_name, is_held

_RUN_LETTERS: Final = 12


def run_prefix(identity: str, run: str) -> str:
    """What the transactional ids of one run begin with."""
    return f"{task_prefix(identity)}{run.replace('-', '')[:_RUN_LETTERS]}-"


def take_transactional_id(
    identity: str, run: str, epoch: int, tag: str | None = None, *, is_only_epoch: bool = False
) -> str:
    """One that no other process uses, nor another task of this epoch; its end tells the query's options."""
    held = held_name("run", identity, run, is_handed_on=not is_only_epoch)
    slot = held.use_slot(epoch)
    end = "" if tag is None else tag_suffix(tag)
    return f"{run_prefix(identity, run)}{held.name}-{slot}{end}"


def tag_suffix(tag: str) -> str:
    return f"-{tag}"


def identity_of(transactional_id: str) -> str:
    """The query, or batch write, that a task's transactional id belongs to."""
    return transactional_id.removeprefix(f"{PREFIX}/").rpartition("/")[0]


def only_of(identity: str, transactional_ids: Iterable[str]) -> set[str]:
    """Not those of writes whose name begins with this one and a slash."""
    return {each for each in transactional_ids if identity_of(each) == identity}


def open_tasks(cluster: Cluster, identity: str) -> set[str]:
    """The transactional ids that tasks of the query, or write, have transactions open under."""
    return only_of(identity, list_open(cluster, task_prefix(identity)))


def is_first_epoch(identity: str, run: str, epoch: int) -> bool:
    """Whether this process has seen no earlier epoch of the run, so that it may be a repetition."""
    if not is_held("run", identity, run):
        return True
    first = held_name("run", identity, run).first_epoch_here
    return first is None or first >= epoch
