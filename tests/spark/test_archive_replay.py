"""Records of an archive put back into a topic, by time, by offset, at once and paced."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from riverlog.spark import Replayed, archive_rows, replay
from riverlog.spark.replaying import ReplayError
from riverlog.testing import Broker
from tests.spark.pipeline_parts import Pipelines
from tests.spark.records import SOURCE_SCHEMA
from tests.spark.topics import Sent, contents

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
COUNT = 12


@pytest.fixture(scope="module")
def path(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Twelve records over two partitions, half a second apart."""
    path = str(tmp_path_factory.mktemp("replay") / "archive")
    rows = [
        (
            b"even" if n % 2 == 0 else None,
            str(n).encode(),
            "orders",
            n % 2,
            n // 2,
            NOON + timedelta(milliseconds=500 * n),
            0,
            [("n", str(n).encode())],
        )
        for n in range(COUNT)
    ]
    df = archive_rows(spark.createDataFrame(rows, SOURCE_SCHEMA).coalesce(1))
    df.write.partitionBy("topic", "date").parquet(path)
    return path


@pytest.fixture
def target(broker: Broker) -> str:
    name = f"again-{uuid4().hex[:8]}"
    broker.create_topic(name, 3)
    return name


def options(broker: Broker) -> dict[str, str]:
    return {"kafka.bootstrap.servers": broker.bootstrap_servers}


def sent(numbers: list[int]) -> list[Sent]:
    return [Sent(b"even" if n % 2 == 0 else None, str(n).encode(), [("n", str(n).encode())]) for n in numbers]


def test_a_replay_keeps_keys_headers_and_order_and_repeats_nothing(
    spark: SparkSession, broker: Broker, path: str, target: str
) -> None:
    seen: list[Replayed] = []
    for _ in range(2):
        done = replay(
            spark, path, target, options(broker), keep_partitions=True, replay_id="r1", progress=seen.append
        )

    assert done == Replayed(COUNT, COUNT, 1)
    assert seen[:2] == [Replayed(0, COUNT, 0), done]
    evens, odds = list(range(0, COUNT, 2)), list(range(1, COUNT, 2))
    assert contents(broker, target) == sent([*evens, *odds])


def test_a_replay_takes_a_range_of_times_or_offsets(
    spark: SparkSession, broker: Broker, path: str, target: str
) -> None:
    start, end = NOON + timedelta(seconds=1), NOON + timedelta(seconds=2)
    replay(spark, path, target, options(broker), start=start, end=end)
    assert sorted(contents(broker, target), key=str) == sorted(sent([2, 3]), key=str)

    done = replay(
        spark,
        path,
        target,
        options(broker),
        start_offset=1,
        end_offset=3,
        partitions=frozenset({0}),
        time_header="first-at",
    )
    assert done.records == 2
    moments = [dict(each.headers).get("first-at") for each in contents(broker, target)]
    noon_ms = int(NOON.timestamp() * 1000)
    assert sorted(moment for moment in moments if moment) == [
        str(noon_ms + 1000).encode(),
        str(noon_ms + 2000).encode(),
    ]
    nothing = replay(spark, path, target, options(broker), start=NOON + timedelta(days=2))
    assert nothing == Replayed(0, 0, 0)


def test_a_paced_replay_takes_its_time_and_shows_parts_meanwhile(
    spark: SparkSession, broker: Broker, path: str, target: str
) -> None:
    began, steps = time.monotonic(), []

    def note(done: Replayed) -> None:
        steps.append((done, len(contents(broker, target)), time.monotonic() - began))

    done = replay(spark, path, target, options(broker), speed=2.0, progress=note)

    assert done == Replayed(COUNT, COUNT, 3)
    assert [(step.records, visible) for step, visible, _ in steps] == [(0, 0), (4, 4), (8, 8), (12, 12)]
    assert steps[-1][2] - steps[0][2] >= 2.0
    values = [each.value for each in contents(broker, target) if each.key == b"even"]
    assert values == [str(n).encode() for n in range(0, COUNT, 2)]


def test_the_command_puts_a_range_back_and_under_its_name_only_once(
    broker: Broker, path: str, target: str, spark_connect: str, tmp_path: Path
) -> None:
    pipelines = Pipelines(tmp_path, broker.bootstrap_servers, spark_connect)
    chosen = ("--partition", "0", "--from", "1", "--to", "3", "--id", f"of-{target}")
    done = pipelines("replay", path, "--topic", target, *chosen)
    assert f"replayed 2 records into {target}" in done.stderr
    pipelines("replay", path, "--topic", target, *chosen)
    assert contents(broker, target) == sent([2, 4])

    at = (NOON + timedelta(seconds=5)).isoformat()
    pipelines("replay", path, "--topic", target, "--from", f"@{at}", "--speed", "20")
    assert sorted(contents(broker, target), key=str) == sorted(sent([2, 4, 10, 11]), key=str)


@pytest.mark.parametrize(
    ("arguments", "complaint", "code"),
    [
        (("--speed", "0"), "--speed 0 is not above 0", 2),
        (("--from", "yesterday"), "yesterday", 2),
        (("--source-topic", "nobody"), "nobody", 1),
    ],
)
def test_the_command_says_what_it_cannot_replay(
    broker: Broker,
    path: str,
    target: str,
    spark_connect: str,
    tmp_path: Path,
    arguments: tuple[str, ...],
    complaint: str,
    code: int,
) -> None:
    pipelines = Pipelines(tmp_path, broker.bootstrap_servers, spark_connect)
    said = pipelines("replay", path, "--topic", target, *arguments, code=code).stderr
    assert complaint in said
    assert len(said.splitlines()) <= 3, said
    assert contents(broker, target) == []


def test_a_replay_into_a_topic_that_does_not_exist_is_one_line_with_a_remedy(
    path: str, spark_connect: str, tmp_path: Path
) -> None:
    with Broker({"auto.create.topics.enable": False}) as strict:
        pipelines = Pipelines(tmp_path, strict.bootstrap_servers, spark_connect)
        said = pipelines("replay", path, "--topic", "nowhere", code=1).stderr
    assert "error: topic nowhere does not exist" in said
    assert "create it with `riverlog topic create nowhere`" in said
    assert len(said.splitlines()) <= 3, said


def test_what_cannot_be_replayed_is_said(
    spark: SparkSession, broker: Broker, path: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="has no time zone"):
        replay(spark, path, "t", options(broker), start=datetime(2026, 3, 1))
    with pytest.raises(ValueError, match="The speed 0 is not"):
        replay(spark, path, "t", options(broker), speed=0)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ReplayError, match="is empty"):
        replay(spark, str(tmp_path / "empty"), "t", options(broker))
    with pytest.raises(ReplayError, match="There is no archive at"):
        replay(spark, str(tmp_path / "nowhere"), "t", options(broker))
