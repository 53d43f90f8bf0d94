"""All that may differ between Apache Kafka's reply and ours: one list, by API, versions and field path.

A path names fields from the top of the reply; list positions are left out, and an entry of a list that is a
map in truth is named by its key (``results.configs{log.dirs}.value``). There are no wildcards. A row that
no reply of the whole replay needs is an error: what agrees must be compared.

Four kinds of row:

* ``CAPTURED``: an identity that each run makes anew. The first sight binds a variable, every later sight
  must be the same variable in the same place, and requests send it back.
* ``TEXT``: words for people. Kafka's sentences are not copied into this repository; that there is none, an
  empty one or one at all is recorded and compared.
* ``BORN``: a number or path that the run or the machine gives. Its presence is compared.
* ``DIFFERS``: we answer otherwise on purpose. The reason says why.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    CAPTURED = "captured"
    TEXT = "text"
    BORN = "born"
    DIFFERS = "differs"


@dataclass(frozen=True, slots=True)
class Difference:
    api: str
    first_version: int
    last_version: int
    path: str
    kind: Kind
    reason: str
    variable: str = ""

    def covers(self, version: int) -> bool:
        return self.first_version <= version <= self.last_version


def _captured(api: str, versions: tuple[int, int], path: str, variable: str, reason: str) -> Difference:
    return Difference(api, *versions, path, Kind.CAPTURED, reason, variable)


def _text(
    api: str, versions: tuple[int, int], path: str, reason: str = "a sentence for people"
) -> Difference:
    return Difference(api, *versions, path, Kind.TEXT, reason)


def _born(api: str, versions: tuple[int, int], path: str, reason: str) -> Difference:
    return Difference(api, *versions, path, Kind.BORN, reason)


def _differs(api: str, versions: tuple[int, int], path: str, reason: str) -> Difference:
    return Difference(api, *versions, path, Kind.DIFFERS, reason)


TOPIC_ID = "the broker draws a topic's id at random"
ADDRESS = "the port that was free when the broker started"
CLUSTER = "drawn at random when the storage is formatted"

DIFFERENCES: tuple[Difference, ...] = (
    _captured("Metadata", (10, 13), "topics.topic_id", "topic_id", TOPIC_ID),
    _captured("Metadata", (0, 13), "brokers.port", "port", ADDRESS),
    _captured("Metadata", (2, 13), "cluster_id", "cluster_id", CLUSTER),
    _captured("DescribeCluster", (0, 2), "cluster_id", "cluster_id", CLUSTER),
    _captured("DescribeCluster", (0, 2), "brokers.port", "port", ADDRESS),
    _text("DescribeCluster", (0, 2), "error_message"),
    _captured("CreateTopics", (7, 7), "topics.topic_id", "topic_id", TOPIC_ID),
    _text("CreateTopics", (2, 7), "topics.error_message"),
    _captured("DeleteTopics", (6, 6), "responses.topic_id", "topic_id", TOPIC_ID),
    _text("DeleteTopics", (5, 6), "responses.error_message"),
    _text("CreatePartitions", (0, 3), "results.error_message"),
    _text("DescribeConfigs", (1, 4), "results.error_message"),
    _text("DescribeConfigs", (3, 4), "results.configs.documentation"),
    _text("AlterConfigs", (0, 2), "responses.error_message"),
    _text("IncrementalAlterConfigs", (0, 1), "responses.error_message"),
    _captured("DescribeTopicPartitions", (0, 0), "topics.topic_id", "topic_id", TOPIC_ID),
    _captured("DescribeLogDirs", (1, 5), "results.log_dir", "log_dir", "a temporary directory"),
    _born("DescribeLogDirs", (4, 5), "results.total_bytes", "the size of the machine's disk"),
    _born("DescribeLogDirs", (4, 5), "results.usable_bytes", "the free space of the machine's disk"),
    _captured("Fetch", (13, 18), "responses.topic_id", "topic_id", TOPIC_ID),
    _captured("Fetch", (7, 18), "session_id", "session", "drawn at random for each fetch session"),
    _captured(
        "Fetch", (4, 18), "responses.partitions.records.producer_id", "producer", "allotted by the broker"
    ),
    _born(
        "Fetch", (4, 18), "responses.partitions.records.max_timestamp{append time}", "the time of the append"
    ),
    _captured("Produce", (13, 13), "responses.topic_id", "topic_id", TOPIC_ID),
    _born("Produce", (3, 13), "responses.partition_responses.log_append_time_ms", "the time of the append"),
    _text("Produce", (8, 13), "responses.partition_responses.error_message"),
    _text("Produce", (8, 13), "responses.partition_responses.record_errors.batch_index_error_message"),
    _born("ListOffsets", (1, 11), "topics.partitions.timestamp{append time}", "the time of the append"),
    _captured("InitProducerId", (0, 5), "producer_id", "producer", "allotted by the broker"),
)
