"""The progress listener of a project that is kept running: its figures in two files beside the lock.

`metrics.prom` is Prometheus text, replaced after each batch; `progress.log` has a line for each batch and is
kept short. Figures are for people: a run goes on without them when they cannot be had.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TYPE_CHECKING, Final

import grpc  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.pipelines.output import Sink

from riverlog.spark import listening
from riverlog.spark.pipelines.graph import StreamingFlow
from riverlog.spark.pipelines.lag import FORMAT
from riverlog.spark.pipelines.project import Project

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

METRICS: Final = "metrics.prom"
LOG: Final = "progress.log"
_LOG_BYTES: Final = 1_000_000
_LOG_FILES: Final = 2
_BOOTSTRAP: Final = "kafka.bootstrap.servers"


@contextmanager
def listened(project: Project, spark: "SparkSession", flows: Sequence[StreamingFlow]) -> Iterator[None]:
    """In the block every batch of the session's queries is told of."""
    directory = project.state_directory
    listener = listening.ProgressListener(prometheus_file=directory / METRICS, brokers=_written_to(flows))
    with _logging_to(directory / LOG):
        spark.streams.addListener(listener)
        try:
            yield
        finally:
            with suppress(PySparkException, grpc.RpcError):
                spark.streams.removeListener(listener)
            listener.close()


def _written_to(flows: Sequence[StreamingFlow]) -> Mapping[str, str] | None:
    """The cluster of the sinks, if it is one; of several nobody could say which query belongs to which."""
    found = {
        str(each.target.options[_BOOTSTRAP])
        for each in flows
        if isinstance(each.target, Sink)
        and each.target.format == FORMAT
        and _BOOTSTRAP in each.target.options
    }
    return {_BOOTSTRAP: found.pop()} if len(found) == 1 else None


@contextmanager
def _logging_to(path: Path) -> Iterator[None]:
    handler = RotatingFileHandler(
        path, maxBytes=_LOG_BYTES, backupCount=_LOG_FILES, encoding="utf-8", delay=True
    )
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger = logging.getLogger(listening.__name__)
    level, propagates = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagates
        handler.close()
