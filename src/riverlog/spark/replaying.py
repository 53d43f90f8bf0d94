"""Records of an archive back into a topic: a range of times or offsets, at full speed or paced.

Records keep their key, value and headers, and their order within each partition that they came from. At full
speed the replay is one write of the sink: all of it becomes visible, or nothing. Paced, it is a row of such
writes, one for each tick of real time; `speed=10` puts ten archived seconds into one. A replay that was given
an id can be run again after a failure: what is there already is not written twice.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from riverlog.model.errors import RiverlogError
from riverlog.spark.archiving import read_archive
from riverlog.spark.functions.dead_letters import HEADERS_TYPE

TICK_S = 1.0
_SLICE = "__riverlog_slice"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ReplayError(RiverlogError):
    """There is nothing to replay, or it is not clear what."""


@dataclass(frozen=True, slots=True)
class Replayed:
    records: int
    total: int
    writes: int
    """How often something became visible; at full speed once."""


def replay(
    spark: SparkSession,
    archive: str,
    topic: str,
    options: Mapping[str, str],
    *,
    source_topic: str | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
    start_offset: int | None = None,
    end_offset: int | None = None,
    partitions: frozenset[int] | None = None,
    speed: float | None = None,
    keep_partitions: bool = False,
    time_header: str | None = None,
    replay_id: str | None = None,
    progress: Callable[[Replayed], None] = lambda _: None,
) -> Replayed:
    """Write records of the archive to `topic` by the sink, which takes `options`.

    The range: `start` and `start_offset` are inclusive, the ends exclusive; `partitions` are those in the
    archive. `source_topic` may be left out when the archive holds one topic. `speed` None is full speed.
    With `keep_partitions` a record goes to the partition of the number that it came from, else to where its
    key belongs. `time_header` names a header for the archived time in ms, as records get a new one.
    """
    if speed is not None and not speed > 0:
        raise ValueError(f"The speed {speed} is not a number above 0. Leave it out for full speed.")
    target = _Target(topic, options, keep_partitions, time_header, replay_id)
    with _naming_archive(archive):
        rows = read_archive(spark, archive)
        wanted = _topic_of(rows, archive, source_topic)
        conditions = _conditions(start, end, start_offset, end_offset, partitions)
        for condition in (sf.col("topic") == wanted, *conditions):
            rows = rows.filter(condition)
        if speed is None:
            return _at_once(rows, target, progress)
        return _paced(rows, target, speed, progress)


@dataclass(frozen=True, slots=True)
class _Target:
    topic: str
    options: Mapping[str, str]
    keep_partitions: bool
    time_header: str | None
    replay_id: str | None

    def write(self, rows: DataFrame, part: str) -> None:
        """All rows of one source partition go through one task, in their order."""
        ordered = rows.repartition("partition").sortWithinPartitions("partition", "offset")
        columns = [sf.col("key"), sf.col("value"), self._headers().alias("headers")]
        if self.keep_partitions:
            columns.append(sf.col("partition"))
        writer = ordered.select(*columns).write.format("riverlog").mode("append").options(**self.options)
        if self.replay_id is not None:
            writer = writer.option("writeId", f"{self.replay_id}{part}")
        writer.option("topic", self.topic).save()

    def _headers(self) -> Column:
        if self.time_header is None:
            return sf.col("headers")
        moment = sf.unix_millis("timestamp").cast("string").cast("binary")
        told = sf.struct(sf.lit(self.time_header).alias("key"), moment.alias("value"))
        return sf.concat(sf.coalesce("headers", sf.array().cast(HEADERS_TYPE)), sf.array(told))


@contextmanager
def _naming_archive(archive: str) -> Iterator[None]:
    """Classic Spark looks for the files at once, Spark Connect when the first rows are wanted."""
    try:
        yield
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        raise ReplayError(f"There is no archive at {archive}.") from error


def _topic_of(rows: DataFrame, archive: str, wanted: str | None) -> str:
    topics = sorted(str(row["topic"]) for row in rows.select("topic").distinct().collect())
    if not topics:
        raise ReplayError(f"The archive {archive} is empty.")
    held = f"The archive {archive} holds {', '.join(topics)}"
    if wanted is None and len(topics) > 1:
        raise ReplayError(f"{held}: say which with source_topic.")
    if wanted is not None and wanted not in topics:
        raise ReplayError(f"{held}, and not {wanted}.")
    return wanted or topics[0]


def _conditions(
    start: datetime | None,
    end: datetime | None,
    start_offset: int | None,
    end_offset: int | None,
    partitions: frozenset[int] | None,
) -> list[Column]:
    found: list[Column] = []
    moment, offset = sf.unix_micros("timestamp"), sf.col("offset")
    if start is not None:
        found += [moment >= _micros(start), sf.col("date") >= sf.lit(start.astimezone(UTC).date())]
    if end is not None:
        found += [moment < _micros(end), sf.col("date") <= sf.lit(end.astimezone(UTC).date())]
    if start_offset is not None:
        found.append(offset >= start_offset)
    if end_offset is not None:
        found.append(offset < end_offset)
    if partitions is not None:
        found.append(sf.col("partition").isin(sorted(partitions)))
    return found


def _micros(moment: datetime) -> int:
    if moment.tzinfo is None:
        raise ValueError(f"The time {moment} has no time zone. Give one, as in 2026-03-01T12:00:00+00:00.")
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _at_once(rows: DataFrame, target: _Target, progress: Callable[[Replayed], None]) -> Replayed:
    total = rows.count()
    progress(Replayed(0, total, 0))
    if total:
        target.write(rows, "")
    done = Replayed(total, total, 1 if total else 0)
    progress(done)
    return done


def _paced(rows: DataFrame, target: _Target, speed: float, progress: Callable[[Replayed], None]) -> Replayed:
    sliced = _with_slices(rows, speed).persist()
    try:
        counts = sorted((row[_SLICE], row["count"]) for row in sliced.groupBy(_SLICE).count().collect())
        done = Replayed(0, sum(count for _, count in counts), 0)
        progress(done)
        began = time.monotonic()
        for number, count in counts:
            # Slices that are written late are not waited for: the pace is caught up with.
            time.sleep(max(0.0, began + number * TICK_S - time.monotonic()))
            target.write(sliced.filter(sf.col(_SLICE) == number), f"/{number}")
            done = Replayed(done.records + count, done.total, done.writes + 1)
            progress(done)
        return done
    finally:
        sliced.unpersist()


def _with_slices(rows: DataFrame, speed: float) -> DataFrame:
    """Which tick a record is due in. One that is older than a record before it is due with that one."""
    so_far = Window.partitionBy("partition").orderBy("offset").rowsBetween(Window.unboundedPreceding, 0)
    due_ms = sf.max(sf.unix_millis("timestamp")).over(so_far)
    first = rows.agg(sf.min(sf.unix_millis("timestamp"))).collect()[0][0] or 0
    return rows.withColumn(_SLICE, sf.floor((due_ms - first) / (speed * TICK_S * 1000)))
