"""Markers in the partitions that this node leads: appended to data, or through the group coordinator.

A marker in the offsets topic must also reach the offsets that wait for it, so the group coordinator writes
it.
"""

import asyncio
from functools import partial
from typing import Protocol

from riverlog.coordinator.runtime.shard_runtime import ShardAnswer
from riverlog.coordinator.transactions.markers import Marker, MarkerWritten
from riverlog.coordinator.transactions.transaction import VERSION_2
from riverlog.model.clock import Clock
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerIdAndEpoch, TopicPartition
from riverlog.model.internal_topics import OFFSETS_TOPIC
from riverlog.records.builder import ControlType, build_control_batch
from riverlog.replication.append_outcomes import AppendRefused
from riverlog.replication.partition import Partition
from riverlog.replication.replica_set import ReplicaSet
from riverlog.storage.log.appends import AppendOrigin


class OffsetMarkers(Protocol):
    """The group coordinator, as far as the ends of transactions go."""

    def write_marker(
        self, partition: int, producer: ProducerIdAndEpoch, coordinator_epoch: int, *, commit: bool
    ) -> ShardAnswer[None]: ...


class LocalMarkerWriter:
    def __init__(self, replicas: ReplicaSet, offsets: OffsetMarkers, clock: Clock) -> None:
        self._replicas = replicas
        self._offsets = offsets
        self._clock = clock

    def write(
        self, partition: TopicPartition, marker: Marker, *, may_be_written: bool = False
    ) -> MarkerWritten:
        found = self._replicas.find(*partition)
        if isinstance(found, ErrorCode):
            return _settled(found)
        if (error := found.refusal()) is not None:
            return _settled(error)
        if _is_late(found, marker):
            return _settled(ErrorCode.INVALID_PRODUCER_EPOCH)
        producers, producer_id = found.log.producers, marker.producer.producer_id
        producers.guards.on_marker(producer_id)
        if may_be_written and _is_written(found, marker):
            if marker.coordinator_epoch < producers.coordinator_epoch(producer_id):
                return _settled(ErrorCode.TRANSACTION_COORDINATOR_FENCED)
            producers.guards.note_coordinator(producer_id, marker.coordinator_epoch)
            return _when_known(found)
        if partition.topic == OFFSETS_TOPIC:
            return self._offsets.write_marker(
                partition.partition, marker.producer, marker.coordinator_epoch, commit=marker.commit
            )
        return self._append(found, marker)

    def _append(self, partition: Partition, marker: Marker) -> MarkerWritten:
        now_ms = self._clock.wall_ms()
        batch = build_control_batch(
            ControlType.COMMIT if marker.commit else ControlType.ABORT,
            timestamp_ms=now_ms,
            producer_id=marker.producer.producer_id,
            producer_epoch=marker.producer.producer_epoch,
            coordinator_epoch=marker.coordinator_epoch,
        )
        outcome = partition.append(
            memoryview(bytearray(batch)), now_ms, for_all_replicas=True, origin=AppendOrigin.COORDINATOR
        )
        if isinstance(outcome, AppendRefused):
            return _settled(outcome.error)
        return _when_committed(partition, outcome.end_offset)


def _is_late(partition: Partition, marker: Marker) -> bool:
    """Each end of version 2 raises the epoch, so what is open in the marker's own epoch is the next one."""
    entry = partition.log.producers.get(marker.producer.producer_id)
    return (
        marker.client_version >= VERSION_2
        and entry is not None
        and entry.epoch == marker.producer.producer_epoch
        and entry.transaction_first_offset is not None
    )


def _is_written(partition: Partition, marker: Marker) -> bool:
    """No transaction of this epoch is open: it has been ended before, or it never wrote here."""
    entry = partition.log.producers.get(marker.producer.producer_id)
    return (
        entry is not None
        and entry.epoch == marker.producer.producer_epoch
        and entry.transaction_first_offset is None
    )


def _when_committed(partition: Partition, end_offset: int) -> MarkerWritten:
    waiting = partition.acknowledged(end_offset)
    if waiting is None:
        return _settled(None)
    written: MarkerWritten = asyncio.get_running_loop().create_future()
    waiting.add_done_callback(partial(_on_acknowledged, written, partition))
    return written


def _when_known(partition: Partition) -> MarkerWritten:
    """What stands here is committed, and nobody else leads: there the transaction may be open, and once it is
    taken for ended nobody would end it."""
    end_offset = partition.log.log_end_offset
    confirmed = partition.tenure.when_confirmed(at_once=False)
    if confirmed is None:
        return _when_committed(partition, end_offset)
    written: MarkerWritten = asyncio.get_running_loop().create_future()

    def settle(result: ErrorCode | None) -> None:
        if not written.done():
            written.set_result(result)

    def on_confirmed(waited: "asyncio.Future[bool]") -> None:
        if waited.cancelled() or not waited.result():
            settle(partition.refusal() or ErrorCode.NOT_LEADER_OR_FOLLOWER)
        else:
            _when_committed(partition, end_offset).add_done_callback(lambda each: settle(each.result()))

    confirmed.add_done_callback(on_confirmed)
    return written


def _on_acknowledged(written: MarkerWritten, partition: Partition, waited: "asyncio.Future[bool]") -> None:
    if written.done():
        return
    if not waited.cancelled() and waited.result():
        written.set_result(None)
    else:
        written.set_result(partition.refusal() or ErrorCode.KAFKA_STORAGE_ERROR)


def _settled(error: ErrorCode | None) -> MarkerWritten:
    written: MarkerWritten = asyncio.get_running_loop().create_future()
    written.set_result(error)
    return written
