"""A Spark Connect session for a project, wherever its master is.

Spark's pipelines speak Spark Connect only, so that definitions mean the same here, under `spark-pipelines`
and on a remote server. For a master other than `sc://…` the driver with its Connect server is started in this
process's own JVM, on a free port and behind a token, so that several projects can run on one machine. What
the JVM and its workers print goes to a log file: it would bury the few lines that a person wants to read.

The imports that need Spark are made inside: PySpark looks at the environment when it is imported.
"""

import logging
import os
import signal
import socket
import sys
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import grpc  # type: ignore[import-untyped]

from riverlog.spark.pipelines.failures import PipelineError, SparkUnreachable, one_line
from riverlog.spark.pipelines.java import check_java
from riverlog.spark.spark_home import use_light_home

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

_PLUGIN: Final = "org.apache.spark.sql.connect.SparkConnectPlugin"
_SERVICE: Final = "org.apache.spark.sql.connect.service.SparkConnectService$"
_SERVER: Final = {
    "spark.plugins": _PLUGIN,
    "spark.connect.grpc.binding.port": "0",
    "spark.sql.artifact.isolation.enabled": "true",
    "spark.sql.artifact.isolation.alwaysApplyClassloader": "true",
    "spark.ui.showConsoleProgress": "false",
}
_LOCAL: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    # Elsewhere it is not sure that the executors' Python finds this package as early as that.
    "spark.python.daemon.module": "riverlog.spark.worker_daemon",
}
_PORT: Final = 15002
_PROBE_S: Final = 5.0
_START_ONE: Final = "start one with Spark's sbin/start-connect-server.sh, or use another --master"
_DEFAULTS: Final = {
    "spark.sql.streaming.stopTimeout": "60s",
    "spark.sql.streaming.pollingDelay": "25ms",
    "spark.sql.streaming.numRecentProgressUpdates": "20",
}


@contextmanager
def opened(
    name: str, configuration: Mapping[str, str], master: str, *, log: Path | None
) -> "Iterator[SparkSession]":
    """A session for the block, stopped at its end. `log` takes what Spark prints; None: stderr does."""
    _quiet()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    settings = {**_DEFAULTS, **configuration}
    if master.startswith("sc://"):
        _probe(master)
        spark = _connected(master, settings)
        try:
            yield spark
        finally:
            release(spark)
        return
    check_java()
    use_light_home()
    context = _started(name, master, settings, log)
    try:
        spark = _connected(f"sc://localhost:{_port_of(context)}", {})
        try:
            yield spark
        finally:
            spark.client.close()
    finally:
        _stop(context)


def release(spark: "SparkSession") -> None:
    """End a session on its server, and leave the server alone; `stop` would end a server of ours as well."""
    from pyspark.errors import PySparkException

    with suppress(PySparkException, grpc.RpcError):
        spark.client.release_session()
    spark.client.close()


def _connected(url: str, settings: Mapping[str, str]) -> "SparkSession":
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession

    # With this `pyspark.sql.functions` make Connect's columns, and SparkSession.active() finds the session.
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
    os.environ["SPARK_LOCAL_REMOTE"] = "1"
    try:
        spark = (
            SparkSession.builder.remote(url)
            .config("spark.sql.connect.serverStacktrace.enabled", "false")
            .create()
        )
        # By default a server that has died is asked again for ten minutes.
        spark.client.set_retry_policies([DefaultPolicy(max_retries=8, max_backoff=3000)])
        for key, value in settings.items():
            if spark.conf.isModifiable(key):
                spark.conf.set(key, value)
    except (PySparkException, grpc.RpcError) as error:
        raise SparkUnreachable(
            f"no Spark Connect server answers at {url}: {one_line(error)}",
            remedy=_START_ONE,
        ) from error
    SparkSession._set_default_and_active_session(spark)
    return spark


def _probe(url: str) -> None:
    """gRPC would try for minutes where nobody listens."""
    address = urlsplit(url)
    try:
        socket.create_connection((address.hostname or "localhost", address.port or _PORT), _PROBE_S).close()
    except OSError as error:
        raise SparkUnreachable(
            f"no Spark Connect server answers at {url}: {error.strerror or error}", remedy=_START_ONE
        ) from error


def _started(name: str, master: str, settings: Mapping[str, str], log: Path | None) -> Any:
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    os.environ["SPARK_CONNECT_AUTHENTICATE_TOKEN"] = str(uuid.uuid4())
    os.environ.pop("SPARK_REMOTE", None)
    conf = SparkConf().setMaster(master).setAppName(name)
    if master.startswith("local"):
        conf.setAll([*_LOCAL.items()])
    plugins = ",".join(filter(None, (_PLUGIN, settings.get("spark.plugins"))))
    conf.setAll([*settings.items(), *_SERVER.items(), ("spark.plugins", plugins)])
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    with _printing_to(log), _keeping_interrupts():
        try:
            context = SparkContext(conf=conf)
            SparkSession(context)
        except (PySparkException, Py4JError) as error:
            where = f"; see {log}" if log else ""
            raise PipelineError(f"Spark did not start on {master}: {one_line(error)}{where}") from error
    return context


def _port_of(context: Any) -> int:
    return int(getattr(getattr(context._jvm, _SERVICE), "MODULE$").localPort())


def _stop(context: Any) -> None:
    """Ends the driver and waits for its JVM; another session in this process may start a new one."""
    from pyspark import SparkContext

    gateway = context._gateway
    os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)
    os.environ.pop("SPARK_LOCAL_REMOTE", None)
    context.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(60)
    SparkContext._gateway = SparkContext._jvm = None


@contextmanager
def _printing_to(log: Path | None) -> Iterator[None]:
    """Processes started in the block inherit a stderr and stdout that end in the log."""
    if log is None:
        yield
        return
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    kept = {number: os.dup(number) for number in (1, 2)}
    try:
        for number in kept:
            os.dup2(target, number)
        yield
    finally:
        for number, original in kept.items():
            os.dup2(original, number)
            os.close(original)
        os.close(target)


@contextmanager
def _keeping_interrupts() -> Iterator[None]:
    """A SparkContext lets Ctrl-C cancel all jobs, in the middle of a batch; the command decides."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _quiet() -> None:
    """Spark prints each analysis error as JSON; it is told in our own words."""
    from pyspark.logger import PySparkLogger

    PySparkLogger.getLogger("DataFrameQueryContextLogger").disabled = True
    logging.getLogger("pyspark.sql.connect").setLevel(logging.CRITICAL)
