"""A partition has one owner in a group under the consumer protocol, by the records of the group (I12).

A member has a partition from the record that gives it to the record in which it is neither assigned nor to be
given up. What the members of classic groups are told is held against each other in `clients.ownership`.
"""

from uuid import UUID

from riverlog.coordinator.formats.consumer_assignments import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
)
from riverlog.coordinator.formats.formats import GroupRecord, decode_key, decode_value, kind_of
from riverlog.model.internal_topics import OFFSETS_TOPIC
from riverlog.records.record import records_of
from riverlog.testing.simulation.checks.ledger import CommittedBatch, Ledger, PartitionLedger
from riverlog.testing.simulation.violations import Violation

_Partitions = set[tuple[UUID | None, int]]


class OwnerCheck:
    def __init__(self, ledger: Ledger) -> None:
        self._owned: dict[PartitionLedger, dict[str, dict[str, _Partitions]]] = {}
        ledger.on_commit.append(self._on_commit)
        ledger.on_cut.append(self._on_cut)

    def _on_commit(self, ledger: PartitionLedger, batch: CommittedBatch) -> None:
        if ledger.topic != OFFSETS_TOPIC or batch.header.is_control:
            return
        groups = self._owned.setdefault(ledger, {})
        changed: set[str] = set()
        for record in records_of(batch.data):
            key = b"" if record.key is None else bytes(record.key)
            if kind_of(key) != GroupRecord.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT:
                continue
            name = decode_key(ConsumerGroupCurrentMemberAssignmentKey, key)
            owned = groups.setdefault(name.group_id, {})
            owned[name.member_id] = set() if record.value is None else _partitions(bytes(record.value))
            changed.add(name.group_id)
        for group in sorted(changed):
            _check(group, groups[group])

    def _on_cut(self, ledger: PartitionLedger) -> None:
        self._owned.pop(ledger, None)
        for batch in ledger.batches:
            self._on_commit(ledger, batch)


def _partitions(value: bytes) -> _Partitions:
    current = decode_value(ConsumerGroupCurrentMemberAssignmentValue, value)
    topics = [*current.assigned_partitions, *current.partitions_pending_revocation]
    return {(topic.topic_id, index) for topic in topics for index in topic.partitions}


def _check(group: str, owned: dict[str, _Partitions]) -> None:
    owners: dict[tuple[UUID | None, int], str] = {}
    for member_id, partitions in owned.items():
        for partition in partitions:
            owner = owners.setdefault(partition, member_id)
            if owner != member_id:
                raise Violation("I12", f"{group}: {partition} belongs to {owner} and to {member_id}")
