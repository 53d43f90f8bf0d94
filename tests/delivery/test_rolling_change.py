"""Brokers of a cluster are replaced by another build one by one, under a producer; builds that cannot be in
one cluster are refused with a line that says what to do.

The other builds are copies of the sources that tell other formats at registration.
"""

import random
import re
import shutil
from pathlib import Path

import pytest

import riverlog
from riverlog.model.errors import RiverlogError
from riverlog.testing import Cluster
from tests.delivery.leader_moves import TOPIC, Mover, Outcome, check, stored
from tests.delivery.numbered_writers import Librdkafka

PARTITIONS = 3
REPLICATED = {"default.replication.factor": 3, "min.insync.replicas": 2}
SOURCES = Path(riverlog.__file__).parent


class Builds:
    """The build of a broker is the one that was chosen last when it is started."""

    def __init__(self, directory: Path, patch: pytest.MonkeyPatch) -> None:
        self._directory, self._patch = directory, patch

    def choose(self, number: int, oldest: int) -> None:
        """One that writes this format, and needs at least the oldest of all brokers."""
        copy = self._directory / f"{number}-{oldest}"
        if not copy.exists():
            shutil.copytree(SOURCES, copy / "riverlog", ignore=shutil.ignore_patterns("__pycache__"))
            registration = copy / "riverlog" / "metadata" / "registration.py"
            text = registration.read_text()
            for name, level in (("FORMAT", number), ("OLDEST_FORMAT", oldest)):
                text, changed = re.subn(rf"^{name}: Final = 1$", f"{name}: Final = {level}", text, flags=re.M)
                assert changed == 1, f"{name} is not where this test takes it from"
            registration.write_text(text)
        self._patch.setenv("PYTHONPATH", str(copy))


def test_brokers_are_replaced_by_another_build_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builds, outcome = Builds(tmp_path, monkeypatch), Outcome()
    with Cluster(3, REPLICATED, processes=True) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        writer = Librdkafka(cluster.bootstrap_servers, TOPIC, PARTITIONS)
        replicas = Mover(cluster, PARTITIONS, random.Random(), outcome)
        writer.start()
        try:
            builds.choose(2, oldest=2)
            _refused(
                cluster, 3, "release with format 1; this one needs 2 of all brokers", "newer release there"
            )
            builds.choose(2, oldest=1)
            for broker in (3, 1, 2):
                cluster.restart(broker)
                replicas.settle()
            builds.choose(2, oldest=2)
            cluster.restart(3)
            replicas.settle()
            monkeypatch.delenv("PYTHONPATH")
            _refused(cluster, 1, "needs format 2 of all brokers; this one has 1", "newer release here")
            builds.choose(2, oldest=1)
            cluster.restart(1)
            replicas.settle()
        finally:
            writer.end()
        check(writer.written, stored(cluster.bootstrap_servers, PARTITIONS), outcome)
    assert outcome.is_clean, outcome
    assert outcome.acknowledged


def _refused(cluster: Cluster, broker: int, *said: str) -> None:
    with pytest.raises(RiverlogError) as refusal:
        cluster.restart(broker)
    for words in said:
        assert words in str(refusal.value)
