"""An archive and the live log of a topic as one batch, with a seam at an offset in each partition.

Below the seam rows come from the archive, from the seam on they come from the log; it makes no difference
that both hold some offsets, or that retention has taken from the log what the archive has. The seam is where
the archive ends when the DataFrame is made, so an archive that grows meanwhile doubles nothing. When the log
begins behind the end of the archive, offsets are in neither of the two, and that is an error.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from riverlog.client.cluster import Cluster
from riverlog.client.offsets import EARLIEST, LATEST, list_offsets
from riverlog.model.errors import RiverlogError
from riverlog.model.ids import TopicPartition
from riverlog.spark.archiving import RECORD_COLUMNS, read_archive
from riverlog.spark.connection import connection_of, true_or_false

_OURS = ("subscribe", "subscribePattern", "assign", "startingOffsets", "startingTimestamp")
_NOT_ON_PATH = "PATH_NOT_FOUND"
_ISOLATION = "isolation.level"


class ArchiveGapError(RiverlogError):
    """Some offsets are neither in the archive nor in the log."""


@dataclass(frozen=True, slots=True)
class LogBounds:
    start: int
    end: int


def read_with_archive(
    spark: SparkSession,
    archive: str,
    topic: str,
    options: Mapping[str, str],
    *,
    checkpoint: str | None = None,
) -> DataFrame:
    """Every record of the topic that the archive or the log has, each offset once.

    `options` are the source's (`kafka.bootstrap.servers`, …); with failOnDataLoss=false a gap between archive
    and log is passed over. `checkpoint` is that of the query that writes the archive, if it is not the
    archive's own: it knows how far the archive goes even where the last offsets are no records.
    """
    lower = {name.lower(): value for name, value in options.items()}
    if taken := next((name for name in _OURS if name.lower() in lower), None):
        raise ValueError(f"The option {taken} cannot be given: the topic and the seam say where to read.")
    ends = archive_ends(spark, archive, topic, checkpoint)
    bounds = _log_bounds(lower, topic)
    may_lose = not true_or_false("failOnDataLoss", lower.get("failondataloss", "true"))
    seams = decide_seams(topic, ends, bounds, may_lose=may_lose)
    live = (
        spark.read.format("riverlog")
        .options(**{**lower, "includeheaders": "true"})
        .option("subscribe", topic)
        .option("startingOffsets", json.dumps({topic: {str(p): seam for p, seam in seams.items()}}))
        .load()
    )
    rows = read_archive(spark, archive).filter(sf.col("topic") == topic)
    pairs = [sf.lit(number) for partition in ends.items() for number in partition]
    if not pairs:
        return live.select(*RECORD_COLUMNS)
    is_below = sf.col("offset") < sf.element_at(sf.create_map(*pairs), sf.col("partition"))
    return rows.filter(is_below).select(*RECORD_COLUMNS).unionByName(live.select(*RECORD_COLUMNS))


def decide_seams(
    topic: str, ends: Mapping[int, int], bounds: Mapping[int, LogBounds], *, may_lose: bool
) -> dict[int, int]:
    """Where the log takes over, for each of its partitions. `ends` is where the archive stops, exclusive."""
    seams: dict[int, int] = {}
    if gone := sorted(set(ends) - set(bounds)):
        raise ArchiveGapError(
            f"The archive has partition {gone[0]} of topic {topic}, which the topic does not have: it is "
            "another topic of that name. Read the archive alone with read_archive."
        )
    for partition, log in bounds.items():
        end = ends.get(partition, 0)
        if end > log.end:
            raise ArchiveGapError(
                f"The archive of topic {topic} reaches offset {end} in partition {partition}, the log ends "
                f"at {log.end}: it is another topic of that name. Read the archive alone with read_archive."
            )
        if end < log.start and not may_lose:
            raise ArchiveGapError(
                f"Offsets {end} to {log.start - 1} of partition {partition} of topic {topic} are neither in "
                "the archive nor in the log. Set failOnDataLoss=false to read without them."
            )
        seams[partition] = max(end, log.start)
    return seams


def archive_ends(spark: SparkSession, archive: str, topic: str, checkpoint: str | None) -> dict[int, int]:
    """The offset after the last one that the archive covers, for each partition."""
    rows = read_archive(spark, archive).filter(sf.col("topic") == topic)
    last = rows.groupBy("partition").agg(sf.max("offset").alias("last")).collect()
    ends = {int(row["partition"]): int(row["last"]) + 1 for row in last}
    passed = _checkpoint_ends(spark, checkpoint or f"{archive.rstrip('/')}/_checkpoint", topic)
    return {
        partition: max(ends.get(partition, 0), passed.get(partition, 0)) for partition in {*ends, *passed}
    }


def _checkpoint_ends(spark: SparkSession, checkpoint: str, topic: str) -> dict[int, int]:
    """Offsets of the last batch that was committed. They lie past transaction markers, which no row does."""
    try:
        commits = spark.read.text(f"{checkpoint}/commits").select("_metadata.file_name").distinct().collect()
        numbers = [int(row["file_name"]) for row in commits if str(row["file_name"]).isdigit()]
        if not numbers:
            return {}
        lines = spark.read.text(f"{checkpoint}/offsets/{max(numbers)}").collect()
    except AnalysisException as error:
        if error.getCondition() == _NOT_ON_PATH:
            return {}
        raise
    documents = (json.loads(row["value"]) for row in lines if str(row["value"]).startswith("{"))
    offsets = (document[topic] for document in documents if isinstance(document.get(topic), dict))
    return {int(partition): int(offset) for each in offsets for partition, offset in each.items()}


def _log_bounds(options: Mapping[str, str], topic: str) -> dict[int, LogBounds]:
    connection = connection_of(options, (_ISOLATION,))
    is_committed = connection.text(_ISOLATION, "read_uncommitted") == "read_committed"
    with Cluster(connection.settings) as cluster:
        view = cluster.topics([topic]).get(topic)
        if view is None or not view.partitions:
            raise ArchiveGapError(
                f"The topic {topic} does not exist. Read the archive alone with read_archive."
            )
        partitions = [TopicPartition(topic, partition) for partition in view.partitions]
        starts = list_offsets(cluster, dict.fromkeys(partitions, EARLIEST))
        ends = list_offsets(cluster, dict.fromkeys(partitions, LATEST), read_committed=is_committed)
    return {at.partition: LogBounds(starts[at] or 0, ends[at] or 0) for at in partitions}
