"""A cluster for the commands to talk to: an embedded broker, or the one of RIVERLOG_TEST_BOOTSTRAP."""

import os
from collections.abc import Iterator

import pytest

from tests.cli.running import CommandLine

BASE_MS = 1_700_000_000_000
"""The timestamp of the first of the `digits`."""


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    if named := os.environ.get("RIVERLOG_TEST_BOOTSTRAP"):
        yield named
        return
    from riverlog.testing import Broker

    with Broker(log_retention_ms=-1) as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def riverlog(bootstrap: str) -> CommandLine:
    return CommandLine(bootstrap)


@pytest.fixture
def digits(riverlog: CommandLine) -> str:
    """A topic of one partition with the values 0 to 9, a second apart."""
    topic = riverlog.topic()
    lines = (f'{{"value": "{number}", "timestamp": {BASE_MS + number * 1000}}}' for number in range(10))
    riverlog.produce(topic, *lines, options=("-i", "json"))
    return topic
