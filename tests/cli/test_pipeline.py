"""`riverlog pipeline` where it ends before Spark begins; with Spark it is tested in tests/spark."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from riverlog.spark.pipelines.notes import FlowNote
from riverlog.spark.pipelines.notes import write as write_notes
from tests.cli.running import CommandLine


@pytest.fixture
def shop(riverlog: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    riverlog("pipeline", "init", "shop")
    return tmp_path / "shop"


def test_init_says_what_to_do_next_and_keeps_what_is_there(riverlog: CommandLine, shop: Path) -> None:
    assert {path.name for path in shop.iterdir()} >= {"spark-pipeline.yml", "transformations"}
    told = riverlog("pipeline", "init", "stall", "--topic", "sales").stderr
    assert "riverlog topic create sales.dead" in told
    assert "riverlog pipeline run stall" in told
    refused = riverlog("pipeline", "init", "shop", code=1)
    assert "exists already" in refused.stderr


@pytest.mark.parametrize("command", ["validate", "run", "status"])
def test_where_there_is_no_project_the_code_is_4(riverlog: CommandLine, tmp_path: Path, command: str) -> None:
    missing = riverlog("pipeline", command, str(tmp_path / "nowhere"), code=4)
    assert "riverlog pipeline init" in missing.stderr


def test_a_mistake_in_the_project_file_is_a_finding_with_its_line(riverlog: CommandLine, shop: Path) -> None:
    with (shop / "spark-pipeline.yml").open("a") as file:
        file.write("storag: here\n")
    line = len((shop / "spark-pipeline.yml").read_text().splitlines())
    found = riverlog("pipeline", "validate", "shop", code=1).stdout
    assert found.startswith(f"spark-pipeline.yml:{line}: unknown field 'storag' (try: ")
    [as_json] = riverlog("pipeline", "validate", "shop", "-o", "json", code=1).json
    assert (as_json["line"], as_json["file"]) == (line, str(shop / "spark-pipeline.yml"))
    assert f"spark-pipeline.yml:{line}: " in riverlog("pipeline", "run", "shop", code=1).stderr


def test_python_that_does_not_parse_is_found_without_spark(riverlog: CommandLine, shop: Path) -> None:
    (shop / "transformations" / "orders.py").write_text("def flow(:\n")
    assert (
        "transformations/orders.py:1: not Python" in riverlog("pipeline", "validate", "shop", code=1).stdout
    )


@pytest.mark.parametrize(
    "options",
    [
        ["run", "--refresh", "sums"],
        ["run", "--full-refresh-all"],
        ["run", "--once", "--full-refresh-all", "--refresh", "sums"],
        ["replay", "archive", "--topic", "t", "--from", "yesterday"],
        ["replay", "archive", "--topic", "t", "--speed", "0"],
    ],
)
def test_options_that_do_not_go_together_are_a_usage_error(riverlog: CommandLine, options: list[str]) -> None:
    assert "try:" in riverlog("pipeline", *options, code=2).stderr


def test_a_project_that_never_ran_has_an_empty_status(riverlog: CommandLine, shop: Path) -> None:
    state = riverlog("pipeline", "status", "shop", "-o", "json").json
    assert state == {"project": "shop", "runner": None, "flows": []}


WITHOUT_SPARK = """
import sys
sys.modules.update(dict.fromkeys(("pyspark", "py4j", "grpc", "pandas")))
from riverlog.cli.main import main
main()
"""


def test_the_status_of_a_project_that_has_run_needs_no_spark(riverlog: CommandLine, shop: Path) -> None:
    topic = riverlog.topic()
    riverlog.produce(topic, *"abcde")
    storage = shop / "pipeline-storage"
    batch = storage / "_checkpoints" / "clean" / "flow" / "0"
    for kind, text in (("offsets", f'v1\n{{}}\n{{"{topic}":{{"0":2}}}}'), ("commits", "v1\n{}")):
        (batch / kind).mkdir(parents=True)
        (batch / kind / "0").write_text(text)
    source = {"subscribe": topic, "kafka.bootstrap.servers": riverlog.bootstrap}
    note = FlowNote("flow", "clean", (source,), "riverlog", {})
    write_notes(storage / "_riverlog", [note])

    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_SPARK, "pipeline", "status", str(shop), "-o", "json"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    [flow] = json.loads(done.stdout)["flows"]
    assert (flow["flow"], flow["lag"]) == ("flow", 3)


def test_without_the_extra_the_remedy_is_how_to_install_it(
    riverlog: CommandLine, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    refused = riverlog("pipeline", "validate", "shop", code=1)
    assert "pip install 'riverlog[spark]'" in refused.stderr


def test_a_connect_server_that_is_not_there_is_a_connection_failure(
    riverlog: CommandLine, shop: Path
) -> None:
    refused = riverlog.execute("pipeline", "run", "shop", "--master", "sc://127.0.0.1:1")
    assert refused.code == 5
    assert refused.stderr.startswith("error: no Spark Connect server answers at sc://127.0.0.1:1: ")
    assert len(refused.stderr.splitlines()) == 2


def test_without_java_the_remedy_is_how_to_install_it(riverlog: CommandLine, shop: Path) -> None:
    refused = riverlog.execute("pipeline", "run", "shop", environ={"JAVA_HOME": str(shop)})
    assert refused.code == 1
    assert "apt install openjdk" in refused.stderr


def test_an_interrupt_that_a_library_loses_comes_again(
    riverlog: CommandLine, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def losing(*given: object) -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            signal.pause()
        except KeyboardInterrupt:
            signal.pause()

    monkeypatch.setattr("riverlog.spark.pipelines.running.run_once", losing)
    monkeypatch.setattr("riverlog.cli.commands.pipeline._ONCE_MORE_S", 0.05)
    before = signal.getsignal(signal.SIGALRM)
    told = riverlog("pipeline", "run", "shop", "--once", code=130)
    assert "stopped before everything was caught up" in told.stderr
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
