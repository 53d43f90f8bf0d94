"""Files that Apache Kafka 4.3.1 wrote: read as they are, and written the same way.

`kafka-clean` is a partition after a clean shutdown, `kafka-unclean` the same one as it was while the broker
ran, with preallocated indexes. It holds five compressions of three records by eight batches, then four
transactions of which the second and the fourth were aborted.
"""

import shutil
from pathlib import Path

import pytest

from riverlog.model.config.slices import LogConfig
from riverlog.model.ids import NodeId
from riverlog.storage.disk.local import LocalDisk
from riverlog.storage.files.meta_properties import read_meta_properties
from riverlog.storage.files.partition_metadata import encode_uuid, write_topic_id
from riverlog.storage.inspect import (
    Finding,
    dump_batches,
    dump_index,
    dump_snapshot,
    dump_time_index,
    dump_transactions,
    verify,
)
from riverlog.storage.log.appends import AppendOrigin
from riverlog.storage.log.log import Log
from riverlog.storage.producers.snapshot import decode_snapshot
from tests.storage.checks import dump_producers, replayed
from tests.storage.logs import START_MS, accept, append, batch, open_log, read_all

FIXTURES = Path(__file__).parent / "fixtures"
CONFIG = LogConfig(index_interval_bytes=200, segment_index_bytes=1000)
SEGMENTS = ("00000000000000000000", "00000000000000000123")


def open_copy(tmp_path: Path, name: str, *, clean: bool, recovery_point: int = 0) -> Log:
    directory = tmp_path / "gold-0"
    shutil.copytree(FIXTURES / name, directory)
    return open_log(
        LocalDisk(), directory=str(directory), config=CONFIG, clean=clean, recovery_point=recovery_point
    )


@pytest.mark.parametrize(
    ("name", "clean"), [("kafka-clean", True), ("kafka-clean", False), ("kafka-unclean", False)]
)
def test_a_log_of_kafka_opens_with_everything_in_it(tmp_path: Path, name: str, clean: bool) -> None:
    log = open_copy(tmp_path, name, clean=clean)
    assert (log.log_start_offset, log.log_end_offset, len(log.segments)) == (0, 136, 2)
    assert log.state.epochs.entries == ((0, 0),)
    records = read_all(log)
    assert [record.offset for record in records] == list(range(136))
    assert records[0].value == b"none-0-0 " * 10
    assert records[119].value == b"zstd-7-2 " * 10
    assert records[0].headers == (("h", b"x"),)
    log.state.set_high_watermark(136)
    assert log.last_stable_offset == 136
    assert log.aborted_transactions(0, 136) == _aborted()
    assert {producer for producer, _ in log.producers} == {producer for producer, _ in replayed(log)[0]}
    found = log.offset_for_timestamp(1700000000012)
    assert found is not None
    assert (found.offset, found.timestamp_ms) == (5, 1700000000012)
    append(log, batch(b"ours", timestamp_ms=START_MS))
    assert read_all(log)[-1].value == b"ours"
    log.close()


def _aborted() -> list[tuple[int, int]]:
    transactions = dump_transactions(LocalDisk(), str(FIXTURES / "kafka-clean" / f"{SEGMENTS[1]}.txnindex"))
    return [(aborted.producer_id, aborted.first_offset) for aborted in transactions]


def test_recovery_rebuilds_the_index_files_that_kafka_wrote(tmp_path: Path) -> None:
    log = open_copy(tmp_path, "kafka-unclean", clean=False)
    log.close()
    for segment in SEGMENTS:
        for suffix in (".log", ".index", ".timeindex"):
            ours = tmp_path / "gold-0" / (segment + suffix)
            assert ours.read_bytes() == (FIXTURES / "kafka-clean" / (segment + suffix)).read_bytes(), (
                ours.name
            )
    name = f"{SEGMENTS[1]}.txnindex"
    assert (tmp_path / "gold-0" / name).read_bytes() == (FIXTURES / "kafka-clean" / name).read_bytes()


def test_appending_what_kafka_appended_writes_the_same_files(tmp_path: Path) -> None:
    """Fed with Kafka's batches one by one, the log and index files are Kafka's to the byte."""
    disk = LocalDisk()
    log = open_log(disk, directory=str(tmp_path / "gold-0"), config=CONFIG)
    for segment in SEGMENTS:
        data = (FIXTURES / "kafka-clean" / f"{segment}.log").read_bytes()
        for found in dump_batches(disk, str(FIXTURES / "kafka-clean" / f"{segment}.log")):
            one = data[found.position : found.position + found.header.size_bytes]
            append(log, accept(one), origin=AppendOrigin.REPLICATION)
    log.close()
    for original in (FIXTURES / "kafka-clean").iterdir():
        if original.suffix == ".snapshot" or original.name == "partition.metadata":
            continue
        assert (tmp_path / "gold-0" / original.name).read_bytes() == original.read_bytes(), original.name
    for segment in ("00000000000000000123", "00000000000000000136"):
        kafkas = dict(decode_snapshot((FIXTURES / "kafka-clean" / f"{segment}.snapshot").read_bytes()))
        ours = dict(decode_snapshot((tmp_path / "gold-0" / f"{segment}.snapshot").read_bytes()))
        assert kafkas.keys() == ours.keys()
        for producer_id, entry in kafkas.items():
            # Kafka has one timestamp per producer; ours tells a batch's from a marker's.
            assert [found[:3] for found in ours[producer_id].batches[-1:]] == [
                found[:3] for found in entry.batches
            ]
            assert ours[producer_id].epoch == entry.epoch
            assert ours[producer_id].coordinator_epoch == entry.coordinator_epoch
            assert ours[producer_id].last_timestamp_ms == entry.last_timestamp_ms


@pytest.mark.parametrize("name", ["kafka-clean", "kafka-unclean"])
def test_verify_has_no_complaint_about_files_of_kafka(name: str) -> None:
    findings = list(verify(LocalDisk(), str(FIXTURES / name)))
    assert [finding for finding in findings if isinstance(finding, Finding)] == []
    assert len(findings) >= 6


def test_dumps_read_every_kind_of_file() -> None:
    disk, base = LocalDisk(), str(FIXTURES / "kafka-clean" / SEGMENTS[1])
    batches = list(dump_batches(disk, base + ".log", with_records=True))
    assert all(found.is_valid for found in batches)
    assert sum(len(found.records) for found in batches) == 13
    offsets = {found.header.last_offset: found.position for found in batches}
    assert all(offsets[offset] == position for offset, position in dump_index(disk, base + ".index"))
    assert len(list(dump_time_index(disk, base + ".timeindex"))) == 2
    assert len(list(dump_transactions(disk, base + ".txnindex"))) == 2
    assert len(list(dump_snapshot(disk, base + ".snapshot"))) == 6


def test_meta_properties_and_partition_metadata_of_kafka(tmp_path: Path) -> None:
    shutil.copy(FIXTURES / "kafka-meta.properties", tmp_path / "meta.properties")
    meta = read_meta_properties(LocalDisk(), str(tmp_path))
    assert meta is not None
    assert meta.node_id == NodeId(1)
    text = (FIXTURES / "kafka-meta.properties").read_text()
    assert f"cluster.id={meta.cluster_id}" in text
    assert f"directory.id={encode_uuid(meta.directory_id)}" in text
    log = open_copy(tmp_path, "kafka-clean", clean=True)
    assert log.topic_id is not None
    write_topic_id(LocalDisk(), str(tmp_path), log.topic_id)
    original = FIXTURES / "kafka-clean" / "partition.metadata"
    assert (tmp_path / "partition.metadata").read_bytes() == original.read_bytes()
    assert dump_producers(log.producers).keys() == dump_producers(replayed(log)[0]).keys()
