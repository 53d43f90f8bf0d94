"""How many partitions a topic has, creating it where the cluster creates topics by itself."""

import time
from typing import Final

from riverlog.client.cluster import Cluster, TopicView
from riverlog.model.errors import ErrorCode
from riverlog.spark.sink.placement import RowRefused
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

_APPEARS_WITHIN_S: Final = 10.0
_PAUSE_S: Final = 0.05


def partition_count(cluster: Cluster, topic: str) -> int:
    view = cluster.topics([topic])[topic]
    if view.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and _creates_itself(cluster, topic):
        view = _appeared(cluster, topic)
    if view.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise RowRefused(f"topic {topic} does not exist; create it with `riverlog topic create {topic}`")
    if view.error != ErrorCode.NONE:
        raise RowRefused(f"topic {topic} cannot be written to: {view.error.name}")
    return len(view.partitions)


def _appeared(cluster: Cluster, topic: str) -> TopicView:
    deadline = time.monotonic() + _APPEARS_WITHIN_S
    while True:
        view = cluster.topics([topic])[topic]
        if view.error == ErrorCode.NONE or time.monotonic() > deadline:
            return view
        time.sleep(_PAUSE_S)


def _creates_itself(cluster: Cluster, topic: str) -> bool:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=True)
    [answer] = cluster.ask_any(ApiKey.METADATA, request).topics
    return answer.error_code in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE)
