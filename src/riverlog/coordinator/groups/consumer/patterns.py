"""The expressions by which the members of a group subscribe, and the topics that they match.

Resolved apart from heartbeats, when an expression is new or topics have come or gone. What matches stands in
a record, so that all members who use an expression have the same topics.
"""

from riverlog.coordinator.groups.consumer import records
from riverlog.coordinator.groups.consumer.group_change import GroupChange
from riverlog.coordinator.groups.consumer.records import Resolved
from riverlog.coordinator.groups.consumer.topics import metadata_hash
from riverlog.metadata.image import ClusterImage
from riverlog.re2.matcher import compiled
from riverlog.re2.parser import InvalidRegex


def write_matches(change: GroupChange, image: ClusterImage, now_ms: int) -> None:
    """Write what each expression matches now, and raise the group's epoch if that is not what it was."""
    group = change.group
    for expression in sorted(group.wanted_regexes()):
        topics = _matching(expression, image)
        known = group.regexes.get(expression)
        if known is None or known.topics != topics:
            resolved = Resolved(topics, image.version, now_ms)
            change.write(records.regex(group.group_id, expression, resolved))
    if change.records:
        change.bump_epoch(metadata_hash(change.group.subscribed_topics(), image))


def _matching(expression: str, image: ClusterImage) -> tuple[str, ...]:
    """Internal topics too, as in Kafka: a pattern can exclude them."""
    try:
        regex = compiled(expression)
    except InvalidRegex:
        return ()  # Accepted by another broker that reads a little more than this one.
    return tuple(name for name in sorted(image.topics) if regex.matches(name))
