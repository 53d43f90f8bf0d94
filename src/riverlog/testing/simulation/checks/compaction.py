"""A compacted log keeps the newest record of every key (I11).

Looked at in the files. Records of a transaction count once it is committed.
A record that a power cut took may have made older ones superfluous before, so its key is passed over.
"""

from riverlog.records.record import records_of
from riverlog.replication.roles import Leader, Role
from riverlog.testing.simulation.checks.ledger import Ledger, PartitionLedger
from riverlog.testing.simulation.checks.log_files import batches
from riverlog.testing.simulation.nodes import ObservedNode, SimulatedNode
from riverlog.testing.simulation.violations import Violation

_Keyed = list[tuple[int, bytes, bool]]
"""Offset, key, and whether there is a value."""


class CompactionCheck:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._read: dict[bytes, _Keyed] = {}
        """What batches hold: the same ones are looked at again and again."""

    def compare(self, node: SimulatedNode, parts: ObservedNode) -> None:
        for partition in parts.replicas:
            topic, index = partition.topic_partition
            ledger, log = self._ledger.of(topic, partition.topic_id, index), partition.log
            if not ledger.is_compacted or not log.is_online:
                continue
            if not ledger.has_lost or _has_its_history(partition.role, ledger):
                self._compare(ledger, node, log.directory, log.high_watermark)
        for at, directory, facts in parts.closed_logs():
            if facts.topic_id is not None:
                ledger = self._ledger.of(at.topic, facts.topic_id, at.partition)
                if ledger.is_compacted and not ledger.has_lost:
                    self._compare(ledger, node, directory, facts.high_watermark)

    def _compare(self, ledger: PartitionLedger, node: SimulatedNode, directory: str, end: int) -> None:
        """`end`: up to where the replica knows what is committed."""
        found = {
            (offset, key)
            for header, data in batches(node.disk, directory)
            if not header.is_control
            for offset, key, _ in self._keyed(data)
        }
        lost = {
            key
            for batch in ledger.lost
            if not batch.header.is_control
            for _, key, _ in self._keyed(batch.data)
        }
        newest: dict[bytes, tuple[int, bool]] = {}
        for header, data in ledger.batches:
            if header.is_control or (header.is_transactional and not ledger.fate_of(header)):
                continue
            for offset, key, has_value in self._keyed(data):
                newest[key] = (offset, has_value)
        for key, (offset, has_value) in newest.items():
            if offset >= end or not has_value:
                continue
            if offset >= ledger.start and key not in lost and (offset, key) not in found:
                raise Violation("I11", f"{ledger}: the newest record of {key!r}, at {offset}, is gone")

    def _keyed(self, data: bytes) -> _Keyed:
        keyed = self._read.get(data)
        if keyed is None:
            keyed = self._read[data] = [
                (record.offset, bytes(record.key), record.value is not None)
                for record in records_of(data)
                if record.key is not None
            ]
        return keyed


def _has_its_history(role: Role, ledger: PartitionLedger) -> bool:
    """Whoever has not been told of an unclean election yet, its former leader too, has another one."""
    return isinstance(role, Leader) and role.epoch >= ledger.unclean_epoch
