"""The daemon that Spark forks its Python task workers from, with what a task of ours needs already imported.

Spark starts it as `python -m riverlog.spark.worker_daemon` when `spark.python.daemon.module` says so, which
`riverlog pipeline run` does on a local master. It is Spark's own daemon in all else. Spark's forks first and
has each worker import by itself, a fifth of a second of processor time, because libraries may start threads,
which a fork does not take along. What is imported here starts none, but for the one with which Arrow's
allocator tidies up in the background; that one knows about forks.
"""

import gc
import importlib
import logging
from typing import Final

from pyspark import daemon

_log = logging.getLogger(__name__)
AHEAD: Final = (
    "pyspark.worker",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.write_into_data_source",
    "riverlog.spark.source.batch_reader",
    "riverlog.spark.source.stream_reader",
    "riverlog.spark.sink.writers",
    "riverlog.spark.sink.batch_epochs",
    "riverlog.spark.sink.task_writer",
)


def import_ahead() -> None:
    """What cannot be imported is left to the workers, which say why."""
    for name in AHEAD:
        try:
            importlib.import_module(name)
        except ImportError as error:
            _log.warning("%s is not imported ahead: %s", name, error)
    # Workers share these pages for as long as nobody touches them.
    gc.freeze()


if __name__ == "__main__":
    import_ahead()
    daemon.manager()
