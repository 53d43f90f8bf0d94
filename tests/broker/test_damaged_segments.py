"""A closed segment is damaged on the disk of a real broker: clients are told, and do not hang."""

import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from riverlog.model.errors import ErrorCode
from riverlog.node.adapters.metrics import InMemoryMetrics
from riverlog.records.batch import walk
from riverlog.records.builder import build_batch
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.fetch import FetchRequest
from riverlog.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.broker.raw_client import RawClient, fetch_request

TOPIC = "orders"
BATCHES, BATCH_RECORDS = 40, 5
END = BATCHES * BATCH_RECORDS
START_MS = 1_700_000_000_000
_STOPS_WITHIN_S = 20


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a broker that was stopped."""
    directory = tmp_path_factory.mktemp("written")
    with Broker(data_dir=str(directory)) as broker:
        broker.create_topic(TOPIC, config={"segment.bytes": 2**20})
        with RawClient(broker) as client:
            for number in range(BATCHES):
                first = number * BATCH_RECORDS
                records = [
                    (START_MS + first + each, None, value_at(first + each), ())
                    for each in range(BATCH_RECORDS)
                ]
                reply = client.produce(TOPIC, build_batch(records))
                assert reply.error_code == ErrorCode.NONE
    return directory


@pytest.fixture
def directory(written: Path, tmp_path: Path) -> Path:
    return shutil.copytree(written, tmp_path / "data")


@pytest.fixture
def damaged(directory: Path) -> Iterator[tuple[Broker, int, int]]:
    """A broker whose third segment claims an absurd length for its first batch; where it begins and ends."""
    segments = closed_segments(directory)
    put(segments[2], 8, b"\x7f\xff\xff\xff")
    with Broker(data_dir=str(directory)) as broker:
        yield broker, int(segments[2].stem), int(segments[3].stem)


def value_at(offset: int) -> bytes:
    return b"%04d" % offset * 7500


def closed_segments(directory: Path) -> list[Path]:
    found = sorted((directory / f"{TOPIC}-0").glob("*.log"))[:-1]
    assert len(found) > 4
    return found


def put(path: Path, position: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[position : position + len(data)] = data
    path.write_bytes(content)


def damages(broker: Broker) -> float:
    metrics = broker.node.metrics
    assert isinstance(metrics, InMemoryMetrics)
    return metrics.value("riverlog_log_damages")


@pytest.mark.parametrize("isolation", [0, 1])
@pytest.mark.parametrize("version", [4, 11, 12])
def test_a_fetch_at_damage_fails_and_one_beside_it_does_not(
    damaged: tuple[Broker, int, int], isolation: int, version: int
) -> None:
    broker, at, behind = damaged
    with RawClient(broker) as client:
        for _ in range(3):
            data = client.fetch(TOPIC, at, version=version, isolation_level=isolation, max_wait_ms=60_000)
            assert data.error_code == ErrorCode.CORRUPT_MESSAGE
            assert not data.records
        below = client.fetch(TOPIC, at - 1, version=version, isolation_level=isolation)
        assert below.error_code == ErrorCode.NONE
        assert [header.last_offset for _, header in walk(below.records)] == [at - 1]  # type: ignore[arg-type]
        later = client.fetch(TOPIC, behind, version=version, isolation_level=isolation)
        assert later.error_code == ErrorCode.NONE
        assert next(walk(later.records))[1].base_offset == behind  # type: ignore[arg-type]
    assert damages(broker) == 1


def test_the_general_way_tells_the_same_as_the_short_one(damaged: tuple[Broker, int, int]) -> None:
    broker, at, behind = damaged
    request = fetch_request(TOPIC, at, max_wait_ms=60_000)
    for offset in (behind, at - 1):
        request.topics.append(fetch_request(TOPIC, offset).topics[0])
    with RawClient(broker) as client:
        replies = client.ask(ApiKey.FETCH, 12, request).responses
    told = [data.error_code for topic in replies for data in topic.partitions]
    assert told == [ErrorCode.CORRUPT_MESSAGE, ErrorCode.NONE, ErrorCode.NONE]


def test_a_fetch_session_tells_of_damage(damaged: tuple[Broker, int, int]) -> None:
    broker, at, _ = damaged
    with RawClient(broker) as client:
        opened = client.ask(ApiKey.FETCH, 12, fetch_request(TOPIC, at - 1, session_epoch=0))
        assert opened.responses[0].partitions[0].error_code == ErrorCode.NONE
        request: FetchRequest = fetch_request(
            TOPIC, at, session_id=opened.session_id, session_epoch=1, max_wait_ms=60_000
        )
        reply = client.ask(ApiKey.FETCH, 12, request)
        assert reply.responses[0].partitions[0].error_code == ErrorCode.CORRUPT_MESSAGE


def test_an_offset_by_time_that_damage_decides_is_an_error(damaged: tuple[Broker, int, int]) -> None:
    broker, at, behind = damaged
    with RawClient(broker) as client:
        assert list_offset(client, START_MS + at + 2) == (ErrorCode.CORRUPT_MESSAGE, -1)
        assert list_offset(client, START_MS + at - 1) == (ErrorCode.NONE, at - 1)
        assert list_offset(client, START_MS + behind + 3) == (ErrorCode.NONE, behind + 3)


def list_offset(client: RawClient, timestamp_ms: int) -> tuple[int, int]:
    wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp_ms)
    topic = ListOffsetsTopic(name=TOPIC, partitions=[wanted])
    request = ListOffsetsRequest(replica_id=-1, topics=[topic])
    answer = client.ask(ApiKey.LIST_OFFSETS, 7, request).topics[0].partitions[0]
    return answer.error_code, answer.offset


def consumed(broker: Broker, start: int = 0) -> tuple[dict[int, bytes | None], str | None, int]:
    """What librdkafka gives to an application that stops at the first error: that error and its offset."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "damage",
            "check.crcs": True,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 100,
        }
    )
    got: dict[int, bytes | None] = {}
    deadline = time.monotonic() + _STOPS_WITHIN_S
    try:
        consumer.assign([TopicPartition(TOPIC, 0, start)])
        while time.monotonic() < deadline:
            message = consumer.poll(0.2)
            if message is None:
                continue
            offset = message.offset()
            assert offset is not None
            if (error := message.error()) is not None:
                is_end = error.name() == "_PARTITION_EOF"
                return got, None if is_end else str(error.name()), offset
            got[offset] = message.value()
    finally:
        consumer.close()
    raise AssertionError(f"a consumer hangs after {len(got)} records")


def test_librdkafka_stops_with_the_offset(damaged: tuple[Broker, int, int]) -> None:
    broker, at, behind = damaged
    assert consumed(broker) == ({offset: value_at(offset) for offset in range(at)}, "INVALID_MSG", at)
    later = {offset: value_at(offset) for offset in range(behind, END)}
    assert consumed(broker, behind) == (later, None, END)


def test_kcat_stops_with_an_error_behind_the_last_whole_record(damaged: tuple[Broker, int, int]) -> None:
    broker, at, _ = damaged
    command = ["kcat", "-b", broker.bootstrap_servers, "-C", "-t", TOPIC, "-p", "0", "-o", "beginning"]
    done = subprocess.run(
        [*command, "-e", "-f", "%o\\n", "-X", "check.crcs=true"],
        capture_output=True,
        text=True,
        timeout=_STOPS_WITHIN_S,
        check=False,
    )
    assert [int(line) for line in done.stdout.split()] == list(range(at))
    assert done.returncode != 0
    assert "Invalid message" in done.stderr


@pytest.mark.parametrize("seed", range(6))
def test_any_byte_flipped_gives_a_real_client_the_right_records_or_an_error(
    directory: Path, seed: int
) -> None:
    chance = random.Random(seed)
    path = chance.choice(closed_segments(directory))
    if seed % 3 == 2:
        path = path.with_suffix(chance.choice((".index", ".timeindex")))
    content = path.read_bytes()
    at, _ = chance.choice(list(walk(content))) if path.suffix == ".log" else (0, None)
    position = at + chance.randrange(61) if path.suffix == ".log" else chance.randrange(len(content))
    put(path, position, bytes([content[position] ^ (1 << chance.randrange(8))]))
    with Broker(data_dir=str(directory)) as broker:
        got, error, offset = consumed(broker)
    assert got == {each: value_at(each) for each in range(offset)}, f"{path.name} byte {position}"
    assert error is not None or offset == END
