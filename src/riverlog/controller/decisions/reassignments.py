"""Decisions about partitions that shall move to other brokers. Pure.

A cluster of one has nowhere to move to: an assignment that is in force already is accepted, all others are
refused, and no reassignment is ever under way.
"""

from collections.abc import Sequence

from riverlog.controller.decisions.assignments import check_replicas
from riverlog.controller.decisions.refusals import Refusal
from riverlog.metadata.image import ClusterImage
from riverlog.model.errors import ErrorCode


def decide_reassignment(
    image: ClusterImage, topic: str, index: int, replicas: Sequence[int] | None
) -> Refusal | None:
    """`None` where the replicas are those already; no replicas at all means to call a reassignment off."""
    partition = image.partition(topic, index)
    if partition is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {topic}-{index}.")
    if replicas is None:
        return Refusal(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None)
    checked = check_replicas(replicas, image.brokers.keys(), None)
    if isinstance(checked, Refusal):
        return checked
    if checked != partition.replicas:
        return Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{topic}-{index} is on {list(partition.replicas)}; replicas cannot be moved between brokers.",
        )
    return None
