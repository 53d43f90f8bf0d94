"""A cluster for the commands to talk to: an embedded broker, or the one of RIVERLOG_TEST_BOOTSTRAP."""

import os
from collections.abc import Iterator

import pytest

from tests.cli.running import CommandLine


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    if named := os.environ.get("RIVERLOG_TEST_BOOTSTRAP"):
        yield named
        return
    from riverlog.testing import Broker

    with Broker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def riverlog(bootstrap: str) -> CommandLine:
    return CommandLine(bootstrap)
