"""The ledger: every batch that was ever committed, by topic id, partition and offset.

A commit extends it and never contradicts it. What was acknowledged, what a reader is given and what a
recovered log holds is compared with it (I1, I2, I4, I10). Records of a compacted log are compared one by one,
since compaction writes their batches anew.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from riverlog.model.ids import TopicId
from riverlog.records.batch import BatchHeader, crc_is_valid, walk
from riverlog.records.builder import ControlType
from riverlog.records.record import records_of
from riverlog.testing.simulation.violations import Violation

_NOT_LONG_AGO: Final = 50


class CommittedBatch(NamedTuple):
    header: BatchHeader
    data: bytes

    @property
    def base_offset(self) -> int:
        return self.header.base_offset


@dataclass(slots=True, eq=False)
class PartitionLedger:
    topic: str
    topic_id: TopicId
    index: int
    batches: list[CommittedBatch] = field(default_factory=list)
    start: int = 0
    """What is below may have been deleted."""
    end: int = 0
    durable_end: int = 0
    """What is below survives a power cut."""
    is_compacted: bool = False
    is_deleted_from: bool = False
    """By retention."""
    has_lost: bool = False
    """A power cut has taken what was not synced, or an unclean election what its leader did not have."""
    lost: list[CommittedBatch] = field(default_factory=list)
    unclean_epoch: int = -1
    """The last unclean election by which something may have been cut. What leaders before it still commit is
    lost."""
    unclean_elected: int = -1
    """The epoch of the last unclean election in the store; nothing else may have been seen of its leader."""
    written: dict[tuple[int, int], bool] = field(default_factory=dict)
    """Of several replicas: what leaders have appended, by offset and CRC, and whether the leader was to be
    sure that it still led."""
    told_ends: dict[bool, tuple[int, int]] = field(default_factory=dict)
    """What consumers were told last, under which leader epoch, of committed records alone or of all."""
    _offsets: list[int] = field(default_factory=list)
    _markers: dict[int, list[tuple[int, bool]]] = field(default_factory=dict)
    """By producer: where its transactions ended, and whether they were committed."""

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"

    def add(self, batch: CommittedBatch) -> None:
        if batch.base_offset < self.end:
            raise Violation("I2", f"{self} commits offset {batch.base_offset} a second time")
        self.batches.append(batch)
        self._offsets.append(batch.base_offset)
        self.end = batch.header.next_offset
        if batch.header.is_control:
            markers = self._markers.setdefault(batch.header.producer_id, [])
            markers.append((batch.base_offset, is_commit(batch.data)))

    def at(self, offset: int) -> CommittedBatch | None:
        """The batch that holds the offset."""
        position = bisect_right(self._offsets, offset) - 1
        if position < 0 or offset > self.batches[position].header.last_offset:
            return None
        return self.batches[position]

    def cut(self, end: int) -> None:
        """A power cut or an unclean election took what was behind `end`, which nobody had been promised."""
        kept = bisect_right(self._offsets, end - 1)
        self.lost += self.batches[kept:]
        del self.batches[kept:], self._offsets[kept:]
        self.has_lost, self.end, self.start = True, end, min(self.start, end)
        self.told_ends.clear()
        for producer_id, markers in self._markers.items():
            self._markers[producer_id] = [each for each in markers if each[0] < end]

    def may_be_deleted_to(self, offset: int) -> None:
        """Somebody asks for it; whether it is done is seen later."""
        self.start = max(self.start, min(offset, self.end))

    def index_at(self, offset: int) -> int:
        """Of the first batch that ends behind the offset."""
        position = max(bisect_right(self._offsets, offset) - 1, 0)
        if position < len(self.batches) and self.batches[position].header.next_offset <= offset:
            position += 1
        return position

    def fate_of(self, header: BatchHeader) -> bool | None:
        """Whether the transaction of a batch was committed; None when it has not ended, or is not known."""
        markers = self._markers.get(header.producer_id, [])
        position = bisect_right(markers, (header.base_offset, True))
        return markers[position][1] if position < len(markers) else None

    def was_committed(self, header: BatchHeader) -> bool:
        """Whether the transaction of a batch that was lost had been committed, by a marker that went with it.
        A replica that has not heard of the loss yet may still give it to readers."""
        is_behind = False
        for each in self.lost:
            if each.base_offset == header.base_offset and each.header.crc == header.crc:
                is_behind = True
            elif is_behind and each.header.is_control and each.header.producer_id == header.producer_id:
                return is_commit(each.data)
        return False

    def records(self) -> Iterator[tuple[int, bytes | None, bytes | None]]:
        for batch in self.batches:
            if not batch.header.is_control:
                yield from _records(batch.data)

    def is_the_same(self, header: BatchHeader, data: memoryview) -> bool:
        """Whether the batch holds what is committed at its offsets, or was before something took it."""
        return self.is_present(header, data) or any(
            each.base_offset == header.base_offset and each.header.crc == header.crc for each in self.lost
        )

    def is_present(self, header: BatchHeader, data: memoryview) -> bool:
        """Whether the batch holds what is committed at its offsets now, not what was before a cut."""
        committed = self.at(header.base_offset)
        if committed is None:
            return False
        if committed.header.crc == header.crc:
            return committed.base_offset == header.base_offset
        return self.is_compacted and self._holds_records_of(header, data)

    def _holds_records_of(self, header: BatchHeader, data: memoryview) -> bool:
        if header.is_control:
            committed = self.at(header.last_offset)
            return committed is not None and committed.header.is_control
        for offset, key, value in _records(bytes(data)):
            batch = self.at(offset)
            if batch is None or (offset, key, value) not in set(_records(batch.data)):
                return False
        return True


class Ledger:
    def __init__(self) -> None:
        self.partitions: dict[tuple[TopicId, int], PartitionLedger] = {}
        self._by_name: dict[tuple[str, int], list[PartitionLedger]] = {}
        self.on_commit: list[Callable[[PartitionLedger, CommittedBatch], None]] = []
        self.on_cut: list[Callable[[PartitionLedger], None]] = []
        self.is_replicated = False
        """Whether partitions may have several replicas, so that what one has is not committed."""

    def of(self, topic: str, topic_id: TopicId, index: int) -> PartitionLedger:
        ledger = self.partitions.get((topic_id, index))
        if ledger is None:
            ledger = self.partitions[topic_id, index] = PartitionLedger(topic, topic_id, index)
            self._by_name.setdefault((topic, index), []).append(ledger)
        return ledger

    def named(self, topic: str, index: int) -> list[PartitionLedger]:
        """Of all topics that ever had the name, the newest first."""
        return self._by_name.get((topic, index), [])[::-1]

    def commit(self, ledger: PartitionLedger, header: BatchHeader, data: bytes) -> None:
        if not crc_is_valid(data, 0, header):
            raise Violation(
                "I10", f"{ledger} commits a batch at {header.base_offset} whose checksum is wrong"
            )
        batch = CommittedBatch(header, data)
        ledger.add(batch)
        for listener in self.on_commit:
            listener(ledger, batch)

    def cut(self, ledger: PartitionLedger, end: int) -> None:
        ledger.cut(end)
        for listener in self.on_cut:
            listener(ledger)

    def lose(self, ledger: PartitionLedger, header: BatchHeader, data: bytes) -> None:
        """Committed by a leader whose history an unclean election has ended."""
        ledger.lost.append(CommittedBatch(header, data))

    def skip(self, ledger: PartitionLedger, log_start: int, first_offset: int) -> None:
        """What is below was deleted before anybody could look: it was committed and gone in one step, or a
        power cut took it and left where the log starts. The batch that holds the log start, if any, begins at
        `first_offset` and is committed as a whole, since readers are given it so."""
        ledger.end = first_offset if first_offset >= ledger.end else log_start

    def check_acknowledged(self, topic: str, index: int, offset: int, crc: int) -> None:
        """A producer was told that its batch stands at this offset (I1, I6)."""
        for ledger in self.named(topic, index):
            batch = ledger.at(offset)
            if batch is not None and batch.header.crc == crc and batch.base_offset == offset:
                return
            if any(each.base_offset == offset and each.header.crc == crc for each in ledger.lost):
                return
        raise Violation("I1", f"{topic}-{index}: offset {offset} was acknowledged and is not committed")

    def find(self, topic: str, index: int, crc: int) -> int | None:
        """Where a batch stands that was committed not long ago."""
        for ledger in self.named(topic, index):
            for batch in ledger.batches[-_NOT_LONG_AGO:]:
                if batch.header.crc == crc:
                    return batch.base_offset
        return None

    def check_written(self, topic: str, index: int, offset: int, crc: int) -> None:
        """A producer was told that one replica has its batch, which may go with that replica (I1, I17)."""
        for ledger in self.named(topic, index):
            was_sure = ledger.written.get((offset, crc))
            if was_sure is None:
                continue
            if not was_sure:
                what = f"offset {offset} was acknowledged by a leader without a lease"
                raise Violation("I17", f"{ledger}: {what}, which another may have followed")
            return
        raise Violation("I1", f"{topic}-{index}: offset {offset} was acknowledged and is not written")

    def check_read(self, topic: str, index: int, data: memoryview) -> list[BatchHeader]:
        """A consumer was given these batches (I2, I4)."""
        headers = []
        for position, header in walk(data):
            batch = data[position : position + header.size_bytes]
            if not crc_is_valid(batch, 0, header):
                raise Violation(
                    "I2", f"{topic}-{index}: a batch at {header.base_offset} with a wrong checksum"
                )
            if not any(each.is_the_same(header, batch) for each in self.named(topic, index)):
                what = f"{topic}-{index}: a consumer was given offsets {header.base_offset} to "
                raise Violation("I2", f"{what}{header.last_offset}, which are not what was committed there")
            headers.append(header)
        return headers


def is_commit(marker: bytes) -> bool:
    """Of a control batch: whether it is that of a committed transaction."""
    [(_, key, _)] = _records(marker)
    assert key is not None
    return key[2:4] == ControlType.COMMIT.to_bytes(2, "big")


def _records(data: bytes) -> Iterator[tuple[int, bytes | None, bytes | None]]:
    for record in records_of(data):
        key, value = record.key, record.value
        yield record.offset, None if key is None else bytes(key), None if value is None else bytes(value)
