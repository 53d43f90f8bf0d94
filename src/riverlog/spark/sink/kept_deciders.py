"""Deciders that a driver's process keeps from one epoch of a run to the next.

Spark asks for each commit in a Python worker that it uses again. There the id is taken over once for each
run, and what has been decided is known: whoever else takes the id over fences this one, so that it cannot
decide any more. A worker that is new, or another run, begins by fencing, as always.
"""

import os
from typing import Final

from riverlog.client.cluster import ClientSettings, Cluster
from riverlog.spark.sink.decisions import Decider

_KEPT_MAX: Final = 64

_kept: dict[tuple[int, ClientSettings, str], Decider] = {}


def kept_decider(cluster: Cluster, identity: str, run: str, epoch: int) -> Decider | None:
    """Of the same run, after an earlier epoch. It has to be kept again: after a failure it is forgotten."""
    decider = _kept.pop((os.getpid(), cluster.settings, identity), None)
    if decider is None:
        return None
    newest = decider.log.newest
    if newest is None or newest.run != run or newest.epoch >= epoch:
        return None
    decider.cluster = decider.log.cluster = cluster
    return decider


def keep_decider(decider: Decider) -> None:
    """For the next epoch, when all of this one is ended."""
    if decider.dialect.bumps_epoch:
        # Otherwise the next decision would have to go on with the sequence of this one.
        _kept[os.getpid(), decider.cluster.settings, decider.log.identity] = decider
    while len(_kept) > _KEPT_MAX:
        del _kept[next(iter(_kept))]
