"""Spares Spark's Python workers from looking through all that they have loaded after every piece of work.

Spark's daemon has each worker collect garbage after each task and each commit. With pandas, Arrow and
PySpark loaded that goes through some hundred thousand objects, none of which ever goes: most of what a task
of a small batch costs. What is there when a worker is used again is therefore set aside for good
(`gc.freeze`); garbage that comes later is collected as before. Not here: the daemon of `pipeline run`, which
does so before it forks (`worker_daemon`).
"""

import gc
import sys
from typing import Final

_DAEMONS: Final = frozenset({"pyspark.daemon", "riverlog.spark.worker_daemon"})
_LAST: Final = 1024


class _Uses:
    count = 0


def set_loaded_aside() -> None:
    """Call whenever Spark calls. Modules may be loaded late: set aside at the second use, the fourth, and so
    on."""
    _Uses.count += 1
    if 1 < _Uses.count <= _LAST and not _Uses.count & (_Uses.count - 1) and _is_worker():
        gc.freeze()


def _is_worker() -> bool:
    """Elsewhere, as in a driver, memory is no business of ours."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec is not None and spec.name in _DAEMONS
