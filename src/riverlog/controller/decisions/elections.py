"""Decisions about elections that are asked for, or due because leaders are not where they belong. Pure.

Which state an election leads to is known to `leadership`; here is whether there is to be one.
"""

from collections.abc import Iterable
from enum import IntEnum
from itertools import islice
from typing import Final

from riverlog.controller.decisions.leadership import Leadership, NewState
from riverlog.controller.decisions.refusals import Refusal
from riverlog.metadata.image import ClusterImage
from riverlog.metadata.partition_states import node_of
from riverlog.model.errors import ErrorCode

REBALANCED_AT_ONCE_MAX: Final = 50
"""Leaders that go back to their preferred replicas in one turn: each move disturbs the clients a little."""


class Election(IntEnum):
    """By its number on the wire."""

    PREFERRED = 0
    UNCLEAN = 1


def decide_election(
    image: ClusterImage, leadership: Leadership, topic: str, index: int, kind: Election
) -> NewState | Refusal:
    partition = image.partition(topic, index)
    if partition is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {topic}-{index}.")
    leadership = leadership.at(image.topics[topic].topic_id, index)
    leads = partition.leader is not None and partition.leader in leadership.brokers
    rules = leadership.rules(topic)
    if kind is Election.UNCLEAN:
        if leads:
            return Refusal(ErrorCode.ELECTION_NOT_NEEDED, "The partition has a leader.")
        node = leadership.next_state(partition, rules._replace(allows_unclean=True))
        if node is None or node.leader is None:
            node = leadership.unclean_state(partition, rules)
        if node is None or node.leader is None:
            return Refusal(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "No replica of the partition is alive.")
        return NewState(topic, index, partition.partition_epoch, node)
    if leads and partition.leader == partition.replicas[0]:
        return Refusal(ErrorCode.ELECTION_NOT_NEEDED, "The preferred replica is the leader.")
    node = leadership.preferred_state(partition, rules)
    if node is None:
        return Refusal(
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred replica is not alive and in sync."
        )
    return NewState(topic, index, partition.partition_epoch, node)


def decide_rebalance(image: ClusterImage, leadership: Leadership) -> list[NewState]:
    """Partitions that their preferred replicas shall lead, as many as may move in one turn."""
    states = (
        NewState(topic.name, index, partition.partition_epoch, node)
        for topic in image.topics.values()
        for index, partition in enumerate(topic.partitions)
        if partition.leader != partition.replicas[0] and partition.partition_epoch >= 0
        for here in [leadership.at(topic.topic_id, index)]
        if (node := here.preferred_state(partition, leadership.rules(topic.name))) is not None
    )
    return list(islice(states, REBALANCED_AT_ONCE_MAX))


def decide_end_of_eligibility(
    image: ClusterImage, controller_epoch: int, topics: Iterable[str]
) -> list[NewState]:
    """The states without eligible leader replicas: what made them eligible, the topic's minimum, changes."""
    return [
        NewState(name, index, partition.partition_epoch, node)
        for name in topics
        if (topic := image.topics.get(name)) is not None
        for index, partition in enumerate(topic.partitions)
        if partition.elr
        for node in [node_of(partition)._replace(elr=(), controller_epoch=controller_epoch)]
    ]
