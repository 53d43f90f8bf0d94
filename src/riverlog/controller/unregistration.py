"""Decisions about brokers that shall be forgotten: those that are gone for good and hold nothing. Pure."""

from collections.abc import Collection

from riverlog.controller.decisions import Refusal
from riverlog.metadata.image import ClusterImage
from riverlog.model.errors import ErrorCode


def decide_unregistration(image: ClusterImage, registered: Collection[int], node_id: int) -> Refusal | None:
    """`registered` are all brokers that are remembered, alive or not."""
    if node_id not in registered:
        return Refusal(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker {node_id} is not registered.")
    if node_id in image.brokers:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Broker {node_id} is running; stop it first.")
    held = [
        f"{topic.name}-{index}"
        for topic in image.topics.values()
        for index, partition in enumerate(topic.partitions)
        if node_id in partition.replicas
    ]
    if held:
        return Refusal(
            ErrorCode.INVALID_REQUEST,
            f"Broker {node_id} holds {len(held)} partitions, such as {held[0]}, which would be lost with it. "
            "Delete their topics first, or start the broker.",
        )
    return None
