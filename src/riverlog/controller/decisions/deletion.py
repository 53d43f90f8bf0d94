"""Decisions about deleting topics, which a request names by name or by id. Pure."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from riverlog.controller.decisions.refusals import Refusal
from riverlog.metadata.image import ClusterImage
from riverlog.model.errors import ErrorCode


class TopicToDelete(NamedTuple):
    """A topic as a request names it."""

    name: str | None = None
    topic_id: UUID | None = None


class Deletion(NamedTuple):
    """What becomes of one topic: deleted when there is no refusal. Named as the answer shows it."""

    name: str | None
    topic_id: UUID | None
    refusal: Refusal | None = None


def decide_deletions(image: ClusterImage, to_delete: Sequence[TopicToDelete]) -> list[Deletion]:
    """One deletion for each topic that was named; one named twice is refused, once."""
    unnamed = [
        _refused(entry, "Neither a name nor an id says which topic is meant.")
        for entry in to_delete
        if entry == TopicToDelete()
    ]
    named_twice = [
        _refused(entry, "A topic is named by its name or by its id, not by both.")
        for entry in to_delete
        if entry.name is not None and entry.topic_id is not None
    ]
    names = Counter(entry.name for entry in to_delete if entry.name is not None and entry.topic_id is None)
    ids = Counter(entry.topic_id for entry in to_delete if entry.name is None and entry.topic_id is not None)
    named = [_by_name(image, name, repeated=count > 1) for name, count in names.items()]
    clashing = {deletion.topic_id for deletion in named if deletion.topic_id in ids}
    named = [
        _refused(deletion, "The topic is named both by its name and by its id.")
        if deletion.topic_id in clashing
        else deletion
        for deletion in named
    ]
    identified = [
        _by_id(image, topic_id, repeated=count > 1)
        for topic_id, count in ids.items()
        if topic_id not in clashing
    ]
    return [*named_twice, *unnamed, *named, *identified]


def _by_name(image: ClusterImage, name: str, *, repeated: bool) -> Deletion:
    if repeated:
        return _refused(TopicToDelete(name), "The same topic name occurs more than once.")
    topic = image.topics.get(name)
    if topic is None:
        refusal = Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{name}'.")
        return Deletion(name, None, refusal)
    return Deletion(name, topic.topic_id)


def _by_id(image: ClusterImage, topic_id: UUID, *, repeated: bool) -> Deletion:
    if repeated:
        return _refused(TopicToDelete(None, topic_id), "The same topic id occurs more than once.")
    name = image.topic_names.get(topic_id)
    if name is None:
        return Deletion(
            None, topic_id, Refusal(ErrorCode.UNKNOWN_TOPIC_ID, "There is no topic with this id.")
        )
    return Deletion(name, topic_id)


def _refused(entry: TopicToDelete | Deletion, message: str) -> Deletion:
    return Deletion(entry.name, entry.topic_id, Refusal(ErrorCode.INVALID_REQUEST, message))
