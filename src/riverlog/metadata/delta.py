"""What differs between two images that follow each other, found once for all who follow the metadata.

Pure. A topic that was deleted and made again under its name is both deleted and created. Partitions are named
one by one only where their topic stays: a topic that is created or deleted changes all of its own. Not here:
finding out which parts may differ (`image_builder`), and acting on it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from riverlog.metadata.image import ClusterImage, ConfigResource, PartitionImage, ResourceType, TopicImage
from riverlog.model.ids import NodeId
from riverlog.model.metadata_store import WentBackError


class PartitionChange(NamedTuple):
    partition: int
    before: PartitionImage | None
    """None: the partition was added."""
    after: PartitionImage


@dataclass(frozen=True, slots=True)
class ImageDelta:
    old: ClusterImage
    new: ClusterImage
    created: Mapping[str, TopicImage]
    deleted: Mapping[str, TopicImage]
    """As they were."""
    partitions: Mapping[str, tuple[PartitionChange, ...]]
    """By topic, of topics that stay; added partitions come last."""
    brokers_added: frozenset[NodeId]
    brokers_removed: frozenset[NodeId]
    configs: frozenset[ConfigResource]
    """Whose settings are not what they were."""

    @property
    def resized_topics(self) -> frozenset[str]:
        """Those that were created, deleted or got more partitions, which is all that groups ask of topics."""
        grown = (name for name, changes in self.partitions.items() if changes[-1].before is None)
        return frozenset((*self.created, *self.deleted, *grown))

    def changes_configs_of(self, *types: ResourceType) -> bool:
        return any(resource.type in types for resource in self.configs)


def delta_between(old: ClusterImage, new: ClusterImage) -> ImageDelta:
    """Compares everything; who knows what may differ asks `delta_of`."""
    return delta_of(
        old,
        new,
        topics=old.topics.keys() | new.topics.keys(),
        brokers=old.brokers.keys() | new.brokers.keys(),
        configs=old.configs.keys() | new.configs.keys(),
    )


def delta_of(
    old: ClusterImage,
    new: ClusterImage,
    *,
    topics: Iterable[str],
    brokers: Iterable[NodeId],
    configs: Iterable[ConfigResource],
) -> ImageDelta:
    """Compares these topics, brokers and configs; nothing else may differ but controller and features."""
    created: dict[str, TopicImage] = {}
    deleted: dict[str, TopicImage] = {}
    partitions: dict[str, tuple[PartitionChange, ...]] = {}
    for name in topics:
        before, after = old.topics.get(name), new.topics.get(name)
        if before is not None and after is not None and before.topic_id == after.topic_id:
            if changes := _changed_partitions(before, after):
                partitions[name] = changes
            continue
        if before is not None:
            deleted[name] = before
        if after is not None:
            created[name] = after
    brokers = frozenset(brokers)
    return ImageDelta(
        old,
        new,
        created,
        deleted,
        partitions,
        brokers_added=(brokers & new.brokers.keys()) - old.brokers.keys(),
        brokers_removed=(brokers & old.brokers.keys()) - new.brokers.keys(),
        configs=frozenset(each for each in configs if old.configs.get(each) != new.configs.get(each)),
    )


def _changed_partitions(before: TopicImage, after: TopicImage) -> tuple[PartitionChange, ...]:
    """Partitions are never taken away from a topic that stays, other than by a store that goes back."""
    known = len(before.partitions)
    if len(after.partitions) < known:
        raise WentBackError(
            f"The metadata store is older than it was: {before.name} had {known} partitions and has "
            f"{len(after.partitions)}."
        )
    changed = [
        PartitionChange(index, was, now)
        for index, (was, now) in enumerate(zip(before.partitions, after.partitions, strict=False))
        if was is not now and was != now
    ]
    added = [PartitionChange(index, None, now) for index, now in enumerate(after.partitions[known:], known)]
    return (*changed, *added)
