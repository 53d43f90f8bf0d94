"""Decisions about brokers that shall be forgotten: those that are gone for good and hold nothing. Pure."""

from riverlog.controller.decisions.refusals import Refusal
from riverlog.metadata.image import ClusterImage
from riverlog.model.errors import ErrorCode


def decide_unregistration(
    image: ClusterImage, node_id: int, *, is_registered: bool, is_alive: bool
) -> Refusal | None:
    """`is_alive`: by the store, which may know of it before the image does."""
    if not is_registered:
        return Refusal(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker {node_id} is not registered.")
    if is_alive or node_id in image.brokers:
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
