"""Which protocol a classic group follows, and what can be read out of a consumer's subscription.

The protocols are opaque to the coordinator. Only what members of type `consumer` subscribe to is looked into,
because it protects committed offsets; what cannot be read protects nothing.
"""

import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from riverlog.coordinator.groups.classic.requests import Protocols
from riverlog.wire.codec import MalformedMessage, decode
from riverlog.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

CONSUMER: Final = "consumer"

_VERSION = struct.Struct(">h")


def common(members: Sequence[Protocols]) -> set[str]:
    """Names that every member knows."""
    names = [{protocol.name for protocol in protocols} for protocols in members]
    return set.intersection(*names) if names else set()


def chosen(members: Sequence[Protocols]) -> str | None:
    """Each member votes for the first that all know; the most votes win, then the eldest vote.

    None when there is no protocol that all know. Kafka breaks a tie by the order of a hash table.
    """
    candidates = common(members)
    votes = Counter(
        next(protocol.name for protocol in protocols if protocol.name in candidates)
        for protocols in members
        if candidates
    )
    # Members come eldest first, and so do their votes: `max` keeps the first of equals.
    return max(votes, key=lambda name: votes[name]) if votes else None


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """The topics of all these consumers; None when one of them cannot be read."""
    topics: set[str] = set()
    for subscription in subscriptions:
        read = read_subscription(subscription)
        if read is None:
            return None
        topics.update(read.topics)
    return frozenset(topics)


def read_subscription(data: bytes) -> ConsumerProtocolSubscription | None:
    """None for what is not a consumer's subscription. A newer version is read as far as it is known."""
    if len(data) < _VERSION.size:
        return None
    (version,) = _VERSION.unpack_from(data)
    first, last = ConsumerProtocolSubscription.VERSIONS
    if version < first:
        return None
    try:
        return decode(ConsumerProtocolSubscription, min(version, last), data, _VERSION.size)[0]
    except MalformedMessage:
        return None
