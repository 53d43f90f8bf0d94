"""The same small pipeline on Spark as several processes, and what its workers need to have.

A topic is read, put into partitions at random, and written exactly once to another. The driver is a program
of its own (`tests.delivery.spark_query`), as it is on a cluster.
"""

import importlib.metadata
import json
import os
import re
import sys
import tarfile
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from riverlog.testing import Broker
from tests.delivery.reading import fill, make_topics, read_all
from tests.delivery.spark_cluster import StandaloneCluster
from tests.delivery.spark_driver import SparkDriver
from tests.spark.pipeline_parts import Pipelines, produce, wait_for_values

ROOT = Path(__file__).parents[2]
ROWS = 200
PARTITIONS = 2
WORKER_HAS = ("pyspark", "py4j", "pyarrow", "numpy", "pandas", "python-dateutil")
"""What Python on a cluster for PySpark has anyway."""


@pytest.fixture
def topics(broker: Broker) -> str:
    """The bootstrap servers of topics that nobody has used."""
    make_topics(broker.bootstrap_servers, PARTITIONS, "random-in", "random-out")
    return broker.bootstrap_servers


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(log_retention_ms=-1) as running:
        yield running


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    """Its workers have a `python3` without Riverlog."""
    bare = tmp_path_factory.mktemp("bare")
    _make_bare_python(bare)
    path = f"{bare / 'bin'}{os.pathsep}{os.environ['PATH']}"
    with StandaloneCluster(tmp_path_factory.mktemp("cluster"), {"PATH": path, "PYTHONPATH": ""}) as cluster:
        yield cluster


@pytest.mark.timeout(600)
def test_the_pipeline_runs_on_a_local_cluster(topics: str, tmp_path: Path) -> None:
    assert _run(topics, tmp_path, "local-cluster[2,1,1024]") is None
    _check(topics)
    assert len(list((tmp_path / "home" / "work").glob("*/*"))) == 2, "an executor for each worker"


@pytest.mark.timeout(600)
def test_the_command_keeps_a_project_running_on_a_standalone_master(
    broker: Broker, tmp_path: Path, standalone: StandaloneCluster
) -> None:
    at = broker.bootstrap_servers
    pipelines = Pipelines(tmp_path, at, standalone.master)
    pipelines("init", "shop", "--topic", "sales")
    for name in ("sales", "sales.clean", "sales.dead"):
        broker.create_topic(name)
    produce(at, "sales", ['{"id": 1, "region": "eu", "amount": 1.5}', "broken"])
    with pipelines.start("shop") as runner:
        (clean,) = wait_for_values(at, "sales.clean", 1, runner)
        assert json.loads(clean)["id"] == 1
        assert wait_for_values(at, "sales.dead", 1, runner) == ["broken"]
        ended = runner.terminate()
    assert ended.code == 0, ended.stderr
    assert f"on {standalone.master}" in ended.stderr


@pytest.mark.timeout(600)
def test_a_worker_without_the_package_is_told_by_its_name(
    topics: str, tmp_path: Path, standalone: StandaloneCluster
) -> None:
    failure = _run(topics, tmp_path, standalone.master, environment=_python_by_name())
    assert failure is not None
    assert set(re.findall(r"ModuleNotFoundError: (.*)", failure)) == {"No module named 'riverlog'"}, failure
    assert read_all(topics, "random-out", PARTITIONS) == []


@pytest.mark.timeout(600)
def test_the_pipeline_runs_on_a_standalone_master_whose_workers_get_the_package_with_an_archive(
    topics: str, tmp_path: Path, standalone: StandaloneCluster
) -> None:
    archive = tmp_path / "packages.tar"
    _pack(archive)
    settings = {"spark.archives": f"{archive}#packages", "spark.executorEnv.PYTHONPATH": "packages"}
    failure = _run(topics, tmp_path, standalone.master, settings, environment=_python_by_name())
    assert failure is None, standalone.errors_of_executors()
    _check(topics)


def _run(
    bootstrap: str,
    directory: Path,
    master: str,
    settings: dict[str, str] | None = None,
    environment: dict[str, str] | None = None,
) -> str | None:
    """What went wrong."""
    fill(bootstrap, "random-in", [(number % PARTITIONS, str(number)) for number in range(ROWS)])
    with SparkDriver(
        directory,
        environment,
        master=master,
        bootstrap=bootstrap,
        points=None,
        rows_a_batch=ROWS // 2,
        settings={"spark.executor.memory": "1g", "spark.task.maxFailures": "1", **(settings or {})},
    ) as driver:
        driver.run("random")
        failure = driver.outcomes()["random"]
        driver.wait_until("ready")
        driver.tell(finish=True)
        driver.finish()
    return failure


def _check(bootstrap: str) -> None:
    found = sorted(int(each.value) for each in read_all(bootstrap, "random-out", PARTITIONS))
    assert found == list(range(ROWS))


def _python_by_name() -> dict[str, str]:
    """The driver's own for the driver, whatever a worker has for the worker."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {"PYSPARK_PYTHON": "python3", "PATH": path}


def _make_bare_python(directory: Path) -> None:
    venv.create(directory, with_pip=False, symlinks=True)
    packages = next(directory.glob("lib/python*/site-packages"))
    for name in WORKER_HAS:
        for source in _installed(name):
            (packages / source.name).symlink_to(source)


def _pack(archive: Path) -> None:
    """Riverlog and what it needs beside PySpark."""
    with tarfile.open(archive, "w") as tar:
        for package in ("riverlog", "pyspark_riverlog"):
            tar.add(ROOT / "src" / package, package)
        for name in sorted(_needed_by("riverlog")):
            for source in _installed(name):
                tar.add(source, source.name)


def _needed_by(distribution: str) -> set[str]:
    """What it needs without any of its extras, and what that needs."""
    found: set[str] = set()
    left = [distribution]
    while left:
        for line in importlib.metadata.requires(left.pop()) or ():
            name = re.split(r"[^\w.-]", line)[0].replace("_", "-")
            # Not installed is what another version of Python or another system would need.
            if "extra ==" not in line and name not in found and _is_installed(name):
                found.add(name)
                left.append(name)
    return found


def _is_installed(distribution: str) -> bool:
    return any(importlib.metadata.distributions(name=distribution))


def _installed(distribution: str) -> list[Path]:
    """The files and directories of a distribution that are to be imported."""
    files = importlib.metadata.files(distribution) or []
    tops = {each.parts[0] for each in files if each.parts[0] != ".."}
    root = Path(str(importlib.metadata.distribution(distribution).locate_file("")))
    return [root / top for top in sorted(tops) if (root / top).exists()]
