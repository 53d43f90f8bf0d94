"""How many partitions a topic has, creating it where the cluster creates topics by itself."""

import time
from typing import Final

from riverlog.client.broker_settings import broker_setting
from riverlog.client.cluster import Cluster
from riverlog.client.core.metadata import KnownTopic
from riverlog.model.errors import ErrorCode
from riverlog.spark.sink.placement import RowRefused
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

_APPEARS_WITHIN_S: Final = 10.0
_PAUSE_S: Final = 0.05
_AUTO_CREATE: Final = "auto.create.topics.enable"


def partition_count(cluster: Cluster, topic: str) -> int:
    view = cluster.topics([topic])[topic]
    if view.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and creates_topics(cluster):
        _ask_to_create(cluster, topic)
        view = _appeared(cluster, topic)
    if view.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise RowRefused(f"topic {topic} does not exist; create it with `riverlog topic create {topic}`")
    if view.error != ErrorCode.NONE:
        raise RowRefused(f"topic {topic} cannot be written to: {view.error.name}")
    return len(view.partitions)


def creates_topics(cluster: Cluster) -> bool:
    return broker_setting(cluster, _AUTO_CREATE) == "true"


def _ask_to_create(cluster: Cluster, topic: str) -> None:
    """The reply says that the topic does not exist, as it does while the topic is being made."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=True)
    cluster.ask_any(ApiKey.METADATA, request)


def _appeared(cluster: Cluster, topic: str) -> KnownTopic:
    deadline = time.monotonic() + _APPEARS_WITHIN_S
    while True:
        view = cluster.topics([topic])[topic]
        if view.error == ErrorCode.NONE or time.monotonic() > deadline:
            return view
        time.sleep(_PAUSE_S)
