"""`riverlog log` on segment files, without a broker."""

import json
from pathlib import Path

import pytest

from riverlog.model.ids import LeaderEpoch
from riverlog.records.builder import build_batch
from riverlog.records.compression import Codec
from riverlog.testing import Broker
from tests.cli.running import CommandLine

BASE_MS = 1_700_000_000_000


@pytest.fixture
def offline() -> CommandLine:
    return CommandLine("127.0.0.1:1")


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    """Three batches of two records each, in the directory of a partition."""
    directory = tmp_path / "orders-0"
    directory.mkdir()
    path = directory / "00000000000000000000.log"
    path.write_bytes(
        b"".join(
            build_batch(
                [
                    (BASE_MS + offset, b"k%d" % offset, b"v" * 100, (("h", b"\xff"),)),
                    (BASE_MS + offset + 1, None, None, ()),
                ],
                base_offset=offset,
                leader_epoch=LeaderEpoch(3),
                codec=Codec.LZ4 if offset == 2 else Codec.NONE,
            )
            for offset in (0, 2, 4)
        )
    )
    return path


def test_dump_shows_a_line_for_each_batch(offline: CommandLine, segment: Path) -> None:
    rows = offline("log", "dump", str(segment), "-o", "json").json_lines

    assert [(row["base_offset"], row["last_offset"], row["records"]) for row in rows] == [
        (0, 1, 2),
        (2, 3, 2),
        (4, 5, 2),
    ]
    assert [row["codec"] for row in rows] == ["none", "lz4", "none"]
    assert {row["leader_epoch"] for row in rows} == {3}
    assert {row["crc"] for row in rows} == {"ok"}
    assert rows[0]["max_timestamp"] == BASE_MS + 1
    assert rows[1]["position"] == rows[0]["bytes"]


def test_dump_of_a_directory_takes_its_segments(offline: CommandLine, segment: Path) -> None:
    (segment.parent / "notes.log").write_text("not a segment")

    heading, *lines = offline("log", "dump", str(segment.parent)).stdout.splitlines()

    assert heading.split()[:3] == ["POSITION", "BASE", "OFFSET"]
    assert len(lines) == 3


def test_dump_shows_records_when_asked(offline: CommandLine, segment: Path) -> None:
    rows = offline("log", "dump", str(segment), "--records", "-o", "json").json_lines
    text = offline("log", "dump", str(segment), "--records").stdout

    records = [row for row in rows if "offset" in row]
    assert [(record["offset"], record["key"]) for record in records][:4] == [
        (0, "k0"),
        (1, None),
        (2, "k2"),
        (3, None),
    ]
    assert records[0]["headers"] == [{"name": "h", "value": "/w==", "value_encoding": "base64"}]
    assert 'offset=4 timestamp=1700000000004 key="k4"' in text


def test_a_cut_off_end_is_mentioned(offline: CommandLine, segment: Path) -> None:
    segment.write_bytes(segment.read_bytes()[:-10])

    outcome = offline("log", "dump", str(segment), "-o", "json")

    assert len(outcome.json_lines) == 2
    assert "no whole batch" in outcome.stderr


def test_verify_is_content_with_a_whole_log(offline: CommandLine, segment: Path) -> None:
    for path in (segment, segment.parent, segment.parent.parent):
        outcome = offline("log", "verify", str(path))
        assert outcome.stdout == ""
        assert "0 problems" in outcome.stderr


def test_verify_finds_a_flipped_bit(offline: CommandLine, segment: Path) -> None:
    whole = segment.read_bytes()
    # What comes before the CRC of a batch (base offset, leader epoch) is not covered by it.
    for position in range(21, len(whole) // 3, 13):
        damaged = bytearray(whole)
        damaged[position] ^= 0x10
        segment.write_bytes(damaged)

        outcome = offline("log", "verify", str(segment.parent), "-o", "json", code=1)

        assert outcome.json[0]["file"] == str(segment), position


def test_files_that_may_not_be_written_can_be_read(offline: CommandLine, segment: Path) -> None:
    segment.chmod(0o444)
    segment.parent.chmod(0o555)
    try:
        offline("log", "verify", str(segment))
        offline("log", "dump", str(segment))
    finally:
        segment.parent.chmod(0o755)


def test_what_is_not_there_is_not_found(offline: CommandLine, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("")

    assert "there is no" in offline("log", "verify", str(tmp_path / "nothing"), code=4).stderr
    assert "there is no" in offline("log", "dump", str(tmp_path / "nothing"), code=4).stderr
    assert "no segments" in offline("log", "dump", str(tmp_path), code=4).stderr
    assert ".timeindex" in offline("log", "dump", str(other), code=2).stderr
    assert "no log files" in offline("log", "verify", str(tmp_path)).stderr


def test_the_files_of_a_broker_are_dumped_and_verified(riverlog: CommandLine, tmp_path: Path) -> None:
    with Broker(data_dir=str(tmp_path / "data")) as broker:
        client = CommandLine(broker.bootstrap_servers)
        topic = client.topic("-s", "index.interval.bytes=100")
        client.produce(
            topic, *(f"{number}:{'x' * 300}" for number in range(50)), options=("-K", ":", "--rate", "100")
        )
    directory = tmp_path / "data" / f"{topic}-0"

    records = riverlog("log", "dump", str(directory), "--records", "-o", "json").json_lines
    times = riverlog("log", "dump", str(directory / f"{0:020}.timeindex"), "-o", "json").json_lines
    places = riverlog("log", "dump", str(directory / f"{0:020}.index"), "-o", "json").json_lines

    assert [json.loads(record["key"]) for record in records if "key" in record] == list(range(50))
    assert times
    assert places
    assert "0 problems" in riverlog("log", "verify", str(tmp_path / "data")).stderr


def test_dump_goes_on_after_an_empty_directory(offline: CommandLine, segment: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty-0"
    empty.mkdir()

    outcome = offline("log", "dump", str(empty), str(segment.parent), "-o", "json")

    assert len(outcome.json_lines) == 3
    assert f"{empty} holds no segments" in outcome.stderr
    assert "no segments" in offline("log", "dump", str(empty), code=4).stderr


def test_dump_decodes_markers(tmp_path: Path) -> None:
    with Broker(data_dir=str(tmp_path / "data")) as broker:
        riverlog = CommandLine(broker.bootstrap_servers)
        topic = riverlog.topic()
        riverlog("produce", topic, "--transactional", stdin="a\n")
        riverlog("produce", topic, "-K", ":", "--transactional", stdin="k:b\nbroken\n", code=1)

    rows = riverlog(
        "log", "dump", str(tmp_path / "data" / f"{topic}-0"), "--records", "-o", "json"
    ).json_lines

    assert [row["marker"] for row in rows if "marker" in row] == ["commit", "abort"]
    assert {row["coordinator_epoch"] for row in rows if "marker" in row} == {0}
