"""Which topics a stream has read, by id, kept for its next run: one made anew has the name but not the id.

Spark's checkpoint has no place for them, and a group's commits for a topic are deleted with the topic. So
they are the metadata of commits for a topic that nobody deletes, the one that holds the offsets of groups, in
a group of their own beside the query's: there they do not stand between the lags of the query. The offsets
of these commits mean nothing. What cannot be kept or read is worth a warning only.
"""

import json
import logging
from collections.abc import Mapping
from typing import Final
from uuid import UUID

from riverlog.client.cluster import BrokerRefused, Cluster, ClusterUnreachable
from riverlog.client.core.versions import UnsupportedApiError
from riverlog.client.offsets import commit_offsets, committed
from riverlog.model.ids import TopicPartition
from riverlog.model.internal_topics import OFFSETS_TOPIC
from riverlog.spark.source.data_loss import DataLoss, tell_loss
from riverlog.spark.source.plan import Standing

SUFFIX: Final = ".topic-ids"
COMMIT_DEADLINE_S: Final = 5.0
FAILURES: Final = (BrokerRefused, ClusterUnreachable, UnsupportedApiError)
_NOTE_BYTES_MAX: Final = 4096
"""What a broker takes by default, see offset.metadata.max.bytes."""
_log = logging.getLogger(__name__)


def check_topics(cluster: Cluster, group: str, standing: Standing) -> None:
    """Before the first batch of a run: whether each topic is the one that the run before has read."""
    if not standing.is_restart:
        return
    try:
        before = _kept(cluster, group)
    except FAILURES as error:
        _log.warning("it was not checked whether topics were made anew meanwhile: %s", error)
        return
    first = {at.topic: at for at in sorted(standing.offsets, reverse=True)}
    for topic, topic_id in standing.topic_ids.items():
        if topic in first and topic_id is not None and before.get(topic, str(topic_id)) != str(topic_id):
            why = "the topic was deleted and made anew while the query was stopped"
            loss = DataLoss(first[topic], standing.offsets[first[topic]], None, why)
            tell_loss(loss, is_allowed=standing.loss_is_allowed)


def keep_topic_ids(cluster: Cluster, group: str, topic_ids: Mapping[str, UUID | None]) -> None:
    try:
        places = _places(cluster)
        notes = dict(zip(places, _notes(topic_ids), strict=False))
        if notes:
            offsets = dict.fromkeys(notes, 0)
            commit_offsets(cluster, group + SUFFIX, offsets, notes=notes, deadline_s=COMMIT_DEADLINE_S)
    except FAILURES as error:
        _log.warning("the ids of topics were not kept for the next run: %s", error)


def _kept(cluster: Cluster, group: str) -> dict[str, str]:
    kept: dict[str, str] = {}
    for found in committed(cluster, group + SUFFIX, _places(cluster)).values():
        kept |= json.loads(found.note)
    return kept


def _places(cluster: Cluster) -> list[TopicPartition]:
    return [
        TopicPartition(OFFSETS_TOPIC, index)
        for index in sorted(cluster.topics([OFFSETS_TOPIC])[OFFSETS_TOPIC].partitions)
    ]


def _notes(topic_ids: Mapping[str, UUID | None]) -> list[str]:
    """As many as it takes, none longer than a broker allows."""
    notes: list[dict[str, str]] = [{}]
    for topic, topic_id in sorted(topic_ids.items()):
        if topic_id is None:
            continue
        if len(json.dumps({**notes[-1], topic: str(topic_id)})) > _NOTE_BYTES_MAX:
            notes.append({})
        notes[-1][topic] = str(topic_id)
    return [json.dumps(each) for each in notes]
