"""One ZooKeeper ensemble for all tests that need one; they leave it whole."""

from collections.abc import Iterator

import pytest

from tests.zookeeper.ensemble import Ensemble


@pytest.fixture(scope="session")
def ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    with Ensemble(tmp_path_factory.mktemp("zookeeper")) as started:
        yield started
