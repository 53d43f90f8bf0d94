"""What the simulator takes a replica to hold, by its files."""

from types import SimpleNamespace
from typing import cast
from uuid import UUID

import pytest

from riverlog.model.ids import TopicId
from riverlog.records.batch import read_header
from riverlog.records.builder import build_batch
from riverlog.testing.simulated_disk import SimulatedDisk
from riverlog.testing.simulation.checks.holding import Holding
from riverlog.testing.simulation.checks.ledger import Ledger, PartitionLedger
from riverlog.testing.simulation.nodes import SimulatedNode

_DIRECTORY = "/data/t-0"


def _batch(value: bytes) -> bytes:
    return bytes(build_batch([(0, b"key", value, ())]))


def _replica_with(data: bytes, ledger: PartitionLedger) -> Holding:
    disk = SimulatedDisk()
    disk.make_directories(_DIRECTORY)
    file = disk.open(f"{_DIRECTORY}/00000000000000000000.log", create=True)
    file.pwrite(data, 0)
    file.close()
    return Holding(cast(SimulatedNode, SimpleNamespace(disk=disk, log_directories=["/data"])), ledger)


@pytest.mark.parametrize("is_compacted", [False, True])
def test_a_replica_with_what_an_unclean_election_took_does_not_hold_what_was_written_since(
    is_compacted: bool,
) -> None:
    ledgers = Ledger()
    ledger = ledgers.of("t", TopicId(UUID(int=7)), 0)
    ledger.is_compacted = is_compacted
    before, since = _batch(b"before"), _batch(b"since")
    ledgers.commit(ledger, read_header(before), before)
    assert _replica_with(before, ledger).look() == 1
    ledgers.cut(ledger, 0)
    ledgers.commit(ledger, read_header(since), since)
    assert _replica_with(before, ledger).look() == 0
    assert _replica_with(since, ledger).look() == 1
