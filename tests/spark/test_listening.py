"""`ProgressListener` on a real query, in classic Spark and over Spark Connect."""

import json
import logging
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from riverlog.spark import ProgressListener
from riverlog.testing import Broker
from tests.spark.listened_query import run_listened
from tests.spark.sink_parts import options_for, run_commit, run_task, values_of
from tests.spark.topics import Sent, send

ROWS, ROWS_A_BATCH = 10, 6
"""Two batches: six rows, then four."""


def asked(broker: Broker, name: str, tmp_path: Path) -> dict[str, str]:
    broker.create_topic(f"{name}-in", partitions=2)
    broker.create_topic(f"{name}-out")
    for partition in range(2):
        sent = [Sent(None, b"%d" % number, []) for number in range(partition, ROWS, 2)]
        send(broker, f"{name}-in", sent, partition=partition)
    return {
        "bootstrap": broker.bootstrap_servers,
        "source": f"{name}-in",
        "target": f"{name}-out",
        "rows_a_batch": str(ROWS_A_BATCH),
        "name": name,
        "file": str(tmp_path / "metrics.prom"),
        "checkpoint": str(tmp_path / "checkpoint"),
    }


def check_text(text: str, name: str) -> None:
    samples = {line.rpartition(" ")[0]: line.rpartition(" ")[2] for line in text.splitlines()}
    found = {key.partition("{")[0]: value for key, value in samples.items() if f'query="{name}"' in key}
    assert found["riverlog_spark_running"] == "0"
    assert found["riverlog_spark_batches_total"] == "2"
    assert found["riverlog_spark_rows_total"] == str(ROWS)
    assert found["riverlog_spark_last_batch"] == "1"
    assert int(found["riverlog_spark_transactions_total"]) >= 1
    assert found["riverlog_spark_open_transactions"] == "0"
    lags = {key: value for key, value in samples.items() if f'topic="{name}-in"' in key}
    assert len(lags) == 2
    assert set(lags.values()) == {"0"}


def test_in_classic_spark_it_tells_lag_rows_and_transactions(
    spark: SparkSession, broker: Broker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = asked(broker, "listened", tmp_path)
    with caplog.at_level(logging.INFO, "riverlog.spark.listening"):
        run_listened(spark, given)
    check_text(Path(given["file"]).read_text(), "listened")
    told = [each.getMessage() for each in caplog.records]
    assert any(each.startswith("query listened: batch 0") and "lag 4 (" in each for each in told), told
    assert any(each.startswith("query listened: batch 1") and "lag 0 (" in each for each in told), told
    assert told[-1] == "query listened ended"
    assert sum(values_of(broker, "listened-out").values()) == ROWS


def test_transactions_of_a_foreach_batch_writer_count_by_its_name(broker: Broker, names: Path) -> None:
    broker.create_topic("by-writers", partitions=2)
    options = options_for(broker, "by-writers")
    told = [run_task(options, [b"a"], query="q:totals", partition=part) for part in range(2)]
    run_commit(options, told)
    run_task(options, [b"open"], query="q:others", partition=2)
    report = {"id": "q", "name": "both", "batchId": 0, "durationMs": {"addBatch": 1}, "sources": []}
    event: Any = SimpleNamespace(progress=SimpleNamespace(json=json.dumps(report)))
    counts = {}
    for writers in ([], ["totals"], ["totals", "others"]):
        brokers = {"kafka.bootstrap.servers": broker.bootstrap_servers}
        listener = ProgressListener(brokers=brokers, writers=writers)
        listener.onQueryProgress(event)
        [figures] = listener.figures()
        counts[tuple(writers)] = figures.transactions, figures.open_transactions
        listener.close()
    assert counts == {(): (0, 0), ("totals",): (2, 0), ("totals", "others"): (2, 1)}


def test_over_spark_connect_it_tells_the_same(spark_connect: str, broker: Broker, tmp_path: Path) -> None:
    given = {**asked(broker, "connected", tmp_path), "url": spark_connect}
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.listened_query", json.dumps(given)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    check_text(Path(given["file"]).read_text(), "connected")
    assert "query connected: batch 1" in done.stderr
