"""One `riverlog serve` for all of Kafka's own tools, and a way to run them."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

KAFKA = Path(__file__).parent.parent / "scripts" / "apache-kafka"
RIVERLOG = Path(sys.executable).with_name("riverlog")


@dataclass(frozen=True, slots=True)
class Server:
    bootstrap: str
    data_dir: Path


Tool = Callable[..., str]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    data_dir = tmp_path_factory.mktemp("data")
    with serving(data_dir, "--data-dir", str(data_dir)) as running:
        yield running


@contextmanager
def serving(data_dir: Path, *options: str) -> Iterator[Server]:
    command = [str(RIVERLOG), "serve", "--listen", "127.0.0.1:0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        ready = process.stdout.readline().strip()
        try:
            yield Server(ready.rpartition(" ")[2], data_dir)
        finally:
            process.terminate()
            code = process.wait(timeout=30)
    assert code == 0


@pytest.fixture(scope="session")
def tool() -> Tool:
    """Run one of Kafka's tools to its end; a failure or a complaint on stderr fails the test."""

    def run(main_class: str, *arguments: str, stdin: str = "") -> str:
        answer = subprocess.run(
            [str(KAFKA), "run", main_class, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert answer.returncode == 0, f"{main_class} failed\n{answer.stdout}\n{answer.stderr}"
        assert "ERROR" not in answer.stderr
        assert "Exception" not in answer.stderr, answer.stderr
        return answer.stdout

    return run
