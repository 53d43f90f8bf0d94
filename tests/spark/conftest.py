"""One Spark for the whole session, with workers that find the package here, and a broker for each module.

All tests with a Spark run in one process: Spark gives its Python processes ten seconds to start.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from riverlog.spark.sink import held_names
from riverlog.spark.spark_home import light_home
from riverlog.testing import Broker
from tests.spark.quick_spark import QUICK


@pytest.fixture(autouse=True)
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where a test that is itself the process of a task finds the names of those before: nowhere at first."""
    directory = tmp_path / "names" / f"riverlog-spark-{os.getuid()}"
    directory.mkdir(parents=True, mode=0o700)
    held: dict[str, held_names.HeldName] = {}
    monkeypatch.setattr(held_names, "names_directory", lambda: directory)
    monkeypatch.setattr(held_names, "_held", held)
    yield directory
    for each in held.values():
        each.release()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    scratch = tmp_path_factory.mktemp("spark")
    os.environ["SPARK_HOME"] = str(light_home(scratch / "home"))
    session = (
        SparkSession.builder.master("local[2]")
        .appName("riverlog-tests")
        .config(map={**QUICK})
        .config("spark.driver.memory", "1g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.local.dir", str(scratch))
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.sql.streaming.checkpointLocation", str(scratch / "checkpoints"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(log_retention_ms=-1) as running:
        yield running


@pytest.fixture(scope="session")
def spark_connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Spark Connect server that all pipelines share."""
    scratch = tmp_path_factory.mktemp("connect")
    command = [sys.executable, "-m", "tests.spark.connect_server", "local[2]", str(scratch)]
    with (scratch / "server.log").open("wb") as log:
        server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd=Path(__file__).parents[2]
        )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        while line := server.stdout.readline():
            if line.startswith(b"port "):
                break
        yield f"sc://localhost:{int(line.split()[1])}"
    finally:
        server.stdin.close()
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        server.stdout.close()
