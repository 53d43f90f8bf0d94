"""The two replicas that `log verify --against` compares: files here, and what one broker sends of its own.

A broker that follows sends consumers what is committed, as the leader does (KIP-392), so that any replica can
be looked at from outside. How far both are compared is decided here; what differs, in `replica_comparison`.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass

from riverlog.cli.asking.batches import fetch
from riverlog.cli.asking.brokers import Brokers
from riverlog.cli.asking.cluster import Place, offset_ranges, topic_configs
from riverlog.cli.asking.connection import Connection
from riverlog.cli.records.replica_comparison import (
    Batch,
    Difference,
    between,
    differences,
    differences_by_key,
)
from riverlog.model.disk import Disk
from riverlog.model.network import Address
from riverlog.records.batch import walk
from riverlog.storage.files import names
from riverlog.storage.log.batch_scan import scan_batches


@dataclass(frozen=True, slots=True)
class Compared:
    place: Place
    start: int
    end: int
    """Of what both have."""
    by_key: bool
    differences: list[Difference]


@dataclass(frozen=True, slots=True)
class LocalReplica:
    disk: Disk
    directory: str

    @property
    def place(self) -> Place:
        found = names.parse_partition_directory(os.path.basename(self.directory))
        assert found is not None
        return found.topic, found.partition

    def batches(self) -> Iterator[Batch]:
        for base in self._bases():
            file = self.disk.open(names.segment_path(self.directory, base, names.LOG))
            for _, header, view, at in scan_batches(file, 0, file.size()):
                yield Batch(header, bytes(view[at : at + header.size_bytes]))

    def range(self) -> tuple[int, int] | None:
        """The first offset and the next one; None without records. Headers are read, not records."""
        first, end = None, None
        for base in self._bases():
            file = self.disk.open(names.segment_path(self.directory, base, names.LOG))
            for _, header, _, _ in scan_batches(file, 0, file.size()):
                first, end = header.base_offset if first is None else first, header.next_offset
        return None if first is None or end is None else (first, end)

    def _bases(self) -> list[int]:
        parsed = (names.parse_segment_file(name) for name in self.disk.list(self.directory))
        return sorted(each[0] for each in parsed if each is not None and each[1] == names.LOG)


@dataclass(frozen=True, slots=True)
class RemoteReplica:
    connection: Connection
    brokers: Brokers
    address: Address
    place: Place

    def committed_end(self, offset: int, *, stable: bool) -> int:
        """How far it has what is committed, or decided (`stable`)."""
        data = fetch(self.brokers, self.connection, self.place, offset, replica=self.address)
        return data.last_stable_offset if stable else data.high_watermark

    def batches(self, start: int, end: int) -> Iterator[Batch]:
        offset = start
        while offset < end:
            data = fetch(self.brokers, self.connection, self.place, offset, replica=self.address)
            assert data.records is None or isinstance(data.records, bytes | memoryview)
            buffer = memoryview(data.records or b"")
            before = offset
            for position, header in walk(buffer):
                yield Batch(header, bytes(buffer[position : position + header.size_bytes]))
                offset = header.next_offset
            if offset == before:
                return


def compare(local: LocalReplica, remote: RemoteReplica) -> Compared:
    """Raises `CommandError` where the broker does not serve the partition."""
    topic, index = remote.place
    settings = {each.name: each.value for each in topic_configs(remote.connection, topic)}
    by_key = "compact" in (settings.get("cleanup.policy") or "")
    led = offset_ranges(remote.connection, topic, [index])[index]
    here = local.range()
    start = led.start if here is None else max(here[0], led.start)
    if here is None or start >= min(here[1], led.end):
        return Compared(remote.place, start, start, by_key, [])
    end = min(here[1], remote.committed_end(start, stable=by_key))
    compared = differences_by_key if by_key else differences
    found = list(
        compared(between(local.batches(), start, end), between(remote.batches(start, end), start, end))
    )
    return Compared(remote.place, start, max(start, end), by_key, found)
