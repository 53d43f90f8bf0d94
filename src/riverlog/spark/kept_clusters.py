"""Connections to a cluster that outlive a task or a commit: a Python worker does one after the other.

To open them and to ask who leads takes longer than the work of a small batch. A cluster belongs to one user
at a time. After a failure its connections are closed, because a reply may still be on the way.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from riverlog.client.cluster import ClientSettings, Cluster

_KEPT_MAX: Final = 4
_KEPT_S: Final = 60.0
"""Less than a broker waits before it closes what is idle."""


@dataclass(frozen=True, slots=True)
class _Kept:
    process: int
    cluster: Cluster
    since_s: float

    @property
    def is_usable(self) -> bool:
        # Workers are forked: what the process before has opened is its own.
        return self.process == os.getpid() and time.monotonic() - self.since_s < _KEPT_S


_kept: list[_Kept] = []
"""Those that nobody uses now, the longest unused first."""


@contextmanager
def kept_cluster(settings: ClientSettings) -> Iterator[Cluster]:
    cluster = _taken(settings) or Cluster(settings)
    try:
        yield cluster
    except BaseException:
        cluster.close()
        raise
    _kept.append(_Kept(os.getpid(), cluster, time.monotonic()))
    while len(_kept) > _KEPT_MAX:
        _kept.pop(0).cluster.close()


def _taken(settings: ClientSettings) -> Cluster | None:
    for each in list(_kept):
        if not each.is_usable:
            _kept.remove(each)
            each.cluster.close()
    for each in reversed(_kept):
        if each.cluster.settings == settings:
            _kept.remove(each)
            return each.cluster
    return None
