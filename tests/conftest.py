"""How Hypothesis runs, which tests are long, and what the long runs did, which a passing test would not tell.

Examples are the same in every run, so that a failure belongs to the change that made it;
`HYPOTHESIS_PROFILE=explore` looks for new ones. There is no deadline: machines are shared.
"""

import os
import signal
from typing import Any

import pytest
from hypothesis import settings

from tests.long import is_long
from tests.sharing import Sharing, scheduler

settings.register_profile("repeat", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeat"))

# Ignored where the tests run in the background of a shell; what they start must be open to interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)
# The tests start hundreds of Python processes, which would compile everything anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

PROPERTY = "run report"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "long: left out by `make test`, run by `make test-long` (tests/long.py)"
    )


@pytest.hookimpl(tryfirst=True)  # Before `-m` looks for the mark.
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if is_long(item.nodeid):
            item.add_marker("long")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Sharing:
    return scheduler(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    told = [
        text
        for report in terminalreporter.stats.get("passed", [])
        for name, text in getattr(report, "user_properties", [])
        if name == PROPERTY and report.when == "call"
    ]
    if told:
        terminalreporter.section("what the runs did")
        for text in told:
            terminalreporter.write_line(text)
