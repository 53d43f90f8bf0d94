"""Three brokers of ours for the replay, in this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from riverlog.testing import Cluster
from tests.differential.brokers.settings import BROKERS, SHARED_CONFIG


class OurCluster:
    """Use `running`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.addresses = {broker: _address(cluster[broker].bootstrap_servers) for broker in BROKERS}

    def stop(self, broker: int) -> None:
        self._cluster[broker].stop()

    def start(self, broker: int) -> None:
        self._cluster.restart(broker)


@contextmanager
def running() -> Iterator[OurCluster]:
    with Cluster(len(BROKERS), SHARED_CONFIG) as cluster:
        yield OurCluster(cluster)


def _address(server: str) -> tuple[str, int]:
    host, _, port = server.rpartition(":")
    return host, int(port)
