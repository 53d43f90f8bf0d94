"""What consumers of the classic protocol tell each other through the coordinator, which has to read and write
it while a group has members of both protocols: subscriptions, and assignments by the names of topics."""

import struct
from typing import Final

from riverlog.coordinator.groups.assignors import Assignment
from riverlog.coordinator.groups.consumer.member import Epochs
from riverlog.metadata.image import ClusterImage
from riverlog.model.ids import TopicId
from riverlog.wire.codec import MalformedMessage, decode, encode
from riverlog.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from riverlog.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

_VERSION: Final = struct.Struct(">h")


def owned_by(
    subscription: ConsumerProtocolSubscription, image: ClusterImage
) -> dict[TopicId, frozenset[int]]:
    """What the consumer says it has; one that gives everything up before it joins has nothing."""
    return {
        image.topics[each.topic].topic_id: frozenset(each.partitions)
        for each in subscription.owned_partitions
        if each.topic in image.topics
    }


def read_assignment(data: bytes, image: ClusterImage) -> Assignment:
    """Of topics that there are; nothing where it is not a consumer's assignment."""
    if len(data) < _VERSION.size:
        return {}
    first, last = ConsumerProtocolAssignment.VERSIONS
    (version,) = _VERSION.unpack_from(data)
    try:
        read, _ = decode(ConsumerProtocolAssignment, min(max(version, first), last), data, _VERSION.size)
    except MalformedMessage:
        return {}
    return {
        image.topics[each.topic].topic_id: tuple(sorted(set(each.partitions)))
        for each in read.assigned_partitions
        if each.topic in image.topics and each.partitions
    }


def write_assignment(assigned: Epochs, image: ClusterImage, subscription: bytes) -> bytes:
    """In the version in which the member has written its subscription."""
    first, last = ConsumerProtocolAssignment.VERSIONS
    version = min(max(_VERSION.unpack_from(subscription)[0], first), last)
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            TopicPartition(topic=image.topic_names[topic], partitions=sorted(indexes))
            for topic, indexes in sorted(assigned.items())
            if topic in image.topic_names
        ]
    )
    return _VERSION.pack(version) + encode(message, version)
