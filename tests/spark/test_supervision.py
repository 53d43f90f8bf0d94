"""What a runner tells of flows that have nothing to do; the queries are made up, the broker is real."""

import json
import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.pipelines.output import Sink
from pyspark.pipelines.source_code_location import SourceCodeLocation

from riverlog.cli.printing.pipeline_watch import LogLines
from riverlog.spark.pipelines.checkpoints import Positions
from riverlog.spark.pipelines.graph import StreamingFlow
from riverlog.spark.pipelines.plans import SourceRead
from riverlog.spark.pipelines.progress import FlowProgress
from riverlog.spark.pipelines.supervision import RunningFlow, Supervision
from riverlog.testing import Broker
from tests.spark.logs import numbered, put


class Seen:
    """Stops the runner when every flow has been shown with a lag, or after a hundred turns."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.lags: list[int | None] = []
        self._turns = 0

    def say(self, text: str) -> None:
        raise AssertionError(text)

    def show(self, flows: Sequence[FlowProgress]) -> None:
        self.lags = [each.lag for each in flows]
        self._turns += 1
        if None not in self.lags or self._turns == 100:
            self.stop.set()


def idle_flow(broker: Broker, topic: str, position: int | None) -> RunningFlow:
    """Of one that has come to this position in an earlier run, or has never had a batch."""
    query: Any = SimpleNamespace(
        isActive=True,
        recentProgress=[],
        status={"message": "Waiting for data to arrive", "isTriggerActive": False},
        stop=lambda: None,
    )
    options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": topic}
    sink = Sink("out", None, SourceCodeLocation("flows.py", 1), "riverlog", {})
    flow = StreamingFlow("idle", sink, None, (SourceRead("riverlog", options, True),), {})
    positions: list[Positions] = [] if position is None else [{topic: {0: position}}]
    return RunningFlow(flow, query, FlowProgress("idle", "out", positions=positions), lambda: query)


def test_the_lag_of_flows_that_have_nothing_to_do_is_shown(broker: Broker) -> None:
    broker.create_topic("behind")
    put(broker, "behind", numbered(0, 10))
    seen = Seen()
    flows = [
        idle_flow(broker, "behind", 10),
        idle_flow(broker, "behind", 3),
        idle_flow(broker, "behind", None),
    ]
    supervision = Supervision(flows, seen)
    supervision.watch(seen.stop, lambda: None)
    assert seen.lags == [0, 7, 0]
    # A last batch has come since: what is known of the lag is of before.
    report = {"batchId": 0, "sources": [{"endOffset": {"behind": {"0": 10}}, "numInputRows": 7}]}
    flows[1].query.recentProgress = [
        SimpleNamespace(json=json.dumps({**report, "durationMs": {"addBatch": 1}}))
    ]
    assert supervision.stop(60)
    assert seen.lags == [0, None, 0]


def test_where_there_is_no_terminal_the_lag_of_an_idle_flow_has_a_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = LogLines()
    flow = FlowProgress("idle", "out")
    lines.show([flow])
    assert capsys.readouterr().err == ""
    flow.lag = 3
    lines.show([flow])
    assert "idle -> out: 0 batches" in (told := capsys.readouterr().err)
    assert told.endswith(", lag 3\n")
    assert not lines.tell()
    flow.lag = 5
    assert lines.tell()
