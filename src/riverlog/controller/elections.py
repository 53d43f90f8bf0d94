"""Decisions about asked-for elections of leaders. Pure.

While a cluster has one broker no election can change anything: the decision is why it does not.
"""

from enum import IntEnum

from riverlog.controller.decisions import Refusal
from riverlog.metadata.image import ClusterImage
from riverlog.model.errors import ErrorCode


class Election(IntEnum):
    """By its number on the wire."""

    PREFERRED = 0
    UNCLEAN = 1


def decide_election(image: ClusterImage, topic: str, index: int, kind: Election) -> Refusal:
    partition = image.partition(topic, index)
    if partition is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {topic}-{index}.")
    leads = partition.leader is not None and partition.leader in image.brokers
    if kind is Election.UNCLEAN:
        if leads:
            return Refusal(ErrorCode.ELECTION_NOT_NEEDED, "The partition has a leader.")
        return Refusal(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "No replica of the partition is alive.")
    if leads and partition.leader == partition.replicas[0]:
        return Refusal(ErrorCode.ELECTION_NOT_NEEDED, "The preferred replica is the leader.")
    return Refusal(
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred replica is not alive and in sync."
    )
