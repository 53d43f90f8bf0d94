"""Keeping the queries of a project running: progress, failures, and a stop after the current batch.

The owner of the queries polls them; nothing here runs on a thread of its own. A query that fails is started
again from its checkpoint, a few times with growing pauses, as Spark's own engine does it; one that keeps
failing ends the run. A stop waits for
each query until it is between two batches. A batch that starts in the very moment of the stop is cut off and
done again after the next start, which the sink's transactions make harmless.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import grpc  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from riverlog.spark.pipelines.checkpoints import Positions
from riverlog.spark.pipelines.failures import PipelineError, one_line
from riverlog.spark.pipelines.graph import StreamingFlow
from riverlog.spark.pipelines.lag import FORMAT, LagGauge, in_step, total_lag
from riverlog.spark.pipelines.progress import FlowProgress

_POLL_S: Final = 0.5
_STOP_POLL_S: Final = 0.02
_LAG_EVERY_S: Final = 2.0
_RESTART_PAUSES_S: Final = (1.0, 5.0, 15.0, 30.0)
_HEALTHY_AFTER_S: Final = 300.0
"""After so long without a failure, the count of restarts begins anew."""


class Watcher(Protocol):
    """Is told what happens, for a person to see."""

    def say(self, text: str) -> None: ...

    def show(self, flows: Sequence[FlowProgress]) -> None: ...


@dataclass(slots=True)
class RunningFlow:
    flow: StreamingFlow
    query: Any
    progress: FlowProgress
    restart: Callable[[], Any]
    failures: int = 0
    failed_at: float = 0.0
    lag_is_at: Sequence[Positions] = ()
    """The positions that its lag was measured from."""

    def topic_sources(self) -> list[Mapping[str, str]]:
        return [each.options for each in self.flow.sources if each.format == FORMAT]


class Supervision:
    def __init__(self, flows: Sequence[RunningFlow], watcher: Watcher) -> None:
        self._flows = flows
        self._watcher = watcher
        self._gauge = LagGauge()
        self._lag_due = 0.0

    def watch(self, stop: threading.Event, also: Callable[[], None]) -> None:
        """Return when `stop` is set; `also` is called each turn. Raises `PipelineError` when a flow fails."""
        while not stop.is_set():
            for each in self._flows:
                self._look_at(each, stop)
            self._measure_lag()
            self._watcher.show([each.progress for each in self._flows])
            also()
            stop.wait(_POLL_S)

    def stop(self, deadline_s: float) -> bool:
        """Stop every query between two batches. False if one was cut off at the deadline."""
        deadline = time.monotonic() + deadline_s
        left = list(self._flows)
        seen = {each.flow.name: self._batch(each) for each in left}
        while left and time.monotonic() < deadline:
            for each in list(left):
                if self._is_between_batches(each, seen[each.flow.name]):
                    self._end(each)
                    left.remove(each)
            time.sleep(_STOP_POLL_S)
        for each in left:
            self._end(each)
        self._gauge.close()
        for each in self._flows:
            if [*each.lag_is_at] != each.progress.positions:
                each.progress.lag = None
        self._watcher.show([each.progress for each in self._flows])
        return not left

    def _look_at(self, each: RunningFlow, stop: threading.Event) -> None:
        try:
            is_active = each.query.isActive
            self._count(each)
            failure = None if is_active else each.query.exception()
        except (PySparkException, grpc.RpcError) as error:
            raise PipelineError(f"flow {each.flow.name}: Spark does not answer: {one_line(error)}") from error
        if not is_active:
            self._start_again(each, one_line(failure) if failure else "its query ended by itself", stop)

    def _start_again(self, each: RunningFlow, reason: str, stop: threading.Event) -> None:
        if time.monotonic() - each.failed_at > _HEALTHY_AFTER_S:
            each.failures = 0
        if each.failures == len(_RESTART_PAUSES_S):
            raise PipelineError(
                f"flow {each.flow.name}: {reason}",
                remedy="remove the cause and run it again: it goes on from its checkpoint",
            )
        pause_s = _RESTART_PAUSES_S[each.failures]
        each.failures += 1
        self._watcher.say(f"flow {each.flow.name} failed and is started again in {pause_s:g} s: {reason}")
        stop.wait(pause_s)
        if not stop.is_set():
            each.query = each.restart()
        each.failed_at = time.monotonic()

    def _count(self, each: RunningFlow) -> None:
        for report in each.query.recentProgress:
            each.progress.add(json.loads(report.json))

    def _measure_lag(self) -> None:
        if time.monotonic() < self._lag_due:
            return
        for each in self._flows:
            positions = each.progress.positions
            each.lag_is_at = positions
            sources = in_step(each.topic_sources(), positions)
            if any(positions):
                each.progress.lag = total_lag(self._gauge, sources, positions)
            elif each.topic_sources() and self._waits_for_its_first_rows(each):
                each.progress.lag = 0
        self._lag_due = time.monotonic() + _LAG_EVERY_S

    def _waits_for_its_first_rows(self, each: RunningFlow) -> bool:
        """It has no position before its first batch, which it makes as soon as there is something to read."""
        try:
            return str(each.query.status["message"]).startswith("Waiting")
        except (PySparkException, grpc.RpcError):
            return False

    def _batch(self, each: RunningFlow) -> int | None:
        return each.progress.last_batch

    def _is_between_batches(self, each: RunningFlow, batch_before: int | None) -> bool:
        try:
            if not each.query.isActive or not each.query.status["isTriggerActive"]:
                return True
            self._count(each)
        except (PySparkException, grpc.RpcError):
            return True  # Spark is gone, and the batch with it.
        return self._batch(each) != batch_before

    def _end(self, each: RunningFlow) -> None:
        try:
            each.query.stop()
            self._count(each)
        except (PySparkException, grpc.RpcError):
            return  # It has ended already: with the signal, Spark may get its own.
