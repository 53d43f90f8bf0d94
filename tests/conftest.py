"""What the long runs did, told at the end of the output: a passing test would otherwise keep it to itself."""

import pytest

PROPERTY = "run report"


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
