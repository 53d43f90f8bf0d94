"""No test sleeps for luck: it waits by `tests.waiting` or in virtual time; the others are named here."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
SLEEP = re.compile(r"\b(?:time|asyncio)\.sleep\(|\b(?:time|asyncio) import .*\bsleep\b|\bEvent\(\)\.wait\(")
ALLOWED = {
    "waiting.py": (3, "looks again at a condition with a deadline, and counts turns of the loop"),
    "virtual_time.py": (1, "in virtual time only, which it asserts"),
    "broker/test_connection_stress.py": (2, "load: replies that take a while, a client that reads slowly"),
    "delivery/numbered_writers.py": (1, "load: records at a rate"),
    "delivery/test_replica_kills.py": (1, "load: records at a rate"),
    "node/test_supervisor.py": (1, "a process that does not end by itself, to be killed"),
    "spark/test_pipeline_project.py": (1, "a process that does not end by itself, to be killed"),
}
WRITTEN = (
    "time.sleep(0.1)",
    "await asyncio.sleep(1)",
    "from time import monotonic, sleep",
    "threading.Event().wait(1)",
)


def test_only_the_places_of_the_table_sleep() -> None:
    others = sorted(path for path in TESTS.rglob("*.py") if path != Path(__file__))
    found = {path.relative_to(TESTS).as_posix(): len(SLEEP.findall(path.read_text())) for path in others}
    assert {path: count for path, count in found.items() if count} == {
        path: count for path, (count, _) in ALLOWED.items()
    }


@pytest.mark.parametrize("line", WRITTEN)
def test_a_sleep_is_found_however_it_is_written(line: str) -> None:
    assert SLEEP.search(line)
