"""`consume` on closed segments that were damaged on disk: the right records or an error with the offset."""

import random
import re
import shutil
from pathlib import Path

import pytest

from riverlog.records.batch import walk
from riverlog.testing import Broker
from tests.cli.running import CommandLine, Outcome

RECORDS = 120
LENGTH_POSITION = 8


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The data directory of a broker that was stopped, and a topic in it of several segments."""
    directory = tmp_path_factory.mktemp("written")
    with Broker(data_dir=str(directory)) as broker:
        riverlog = CommandLine(broker.bootstrap_servers)
        topic = riverlog.topic("-s", "segment.bytes=1048576", "-s", "max.message.bytes=200000")
        values = (value_at(offset) for offset in range(RECORDS))
        riverlog.produce(topic, *values, options=("-X", "batch.num.messages=2"))
    return directory, topic


def value_at(offset: int) -> str:
    return f"{offset:05d}" * 10_000


@pytest.fixture
def directory(written: tuple[Path, str], tmp_path: Path) -> Path:
    return shutil.copytree(written[0], tmp_path / "data")


def closed_segments(directory: Path, topic: str) -> list[Path]:
    found = sorted((directory / f"{topic}-0").glob("*.log"))[:-1]
    assert len(found) >= 4
    return found


def put(path: Path, position: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[position : position + len(data)] = data
    path.write_bytes(content)


def consumed(directory: Path, topic: str) -> Outcome:
    with Broker(data_dir=str(directory)) as broker:
        options = ("--from", "start", "--exit-at-end", "--timeout", "10", "-f", r"%o %s\n")
        return CommandLine(broker.bootstrap_servers).execute("consume", topic, *options)


def test_an_absurd_length_ends_the_reading_with_the_offset(
    written: tuple[Path, str], directory: Path
) -> None:
    segment = closed_segments(directory, written[1])[2]
    put(segment, LENGTH_POSITION, b"\x7f\xff\xff\xff")

    outcome = consumed(directory, written[1])

    at = int(segment.stem)
    assert outcome.code == 1
    assert offsets_of(outcome) == list(range(at))
    assert f"{written[1]}-0 at offset {at}: " in outcome.stderr
    assert "riverlog log verify" in outcome.stderr


@pytest.mark.parametrize("seed", range(12))
def test_any_byte_flipped_gives_the_right_records_or_an_error_with_the_offset(
    written: tuple[Path, str], directory: Path, seed: int
) -> None:
    chance = random.Random(seed)
    segment = chance.choice(closed_segments(directory, written[1]))
    content = segment.read_bytes()
    position = chance.randrange(len(content))
    if seed % 2:  # Records are most of a file; the headers of batches are where damage leads astray.
        at, _ = chance.choice(list(walk(content)))
        position = at + chance.randrange(61)
    put(segment, position, bytes([content[position] ^ (1 << chance.randrange(8))]))

    outcome = consumed(directory, written[1])

    told = re.search(r" at offset (\d+): ", outcome.stderr)
    reached = RECORDS if told is None else int(told[1])
    case = f"seed {seed}, {segment.name} byte {position}: {outcome.stderr}"
    assert (outcome.code == 0) == (told is None), case
    assert offsets_of(outcome) == list(range(reached)), case


def offsets_of(outcome: Outcome) -> list[int]:
    """Of the records that were printed, each of which must be the right one."""
    found = []
    for line in outcome.stdout.splitlines():
        offset, _, value = line.partition(" ")
        assert value == value_at(int(offset))
        found.append(int(offset))
    return found
