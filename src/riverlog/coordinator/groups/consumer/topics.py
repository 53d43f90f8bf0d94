"""Topics as the groups of the consumer protocol see them: ids, sizes, and a hash that tells of any change.

The hash stands in the group's record so that a new coordinator notices what changed meanwhile. Its value
is read by this code alone; unlike Kafka's it does not contain racks, which the assignors do not consider.
"""

import hashlib
from collections.abc import Collection, Iterable

from riverlog.metadata.image import ClusterImage, TopicImage
from riverlog.model.ids import TopicId

_HASH_BYTES = 8


def sizes_of(names: Iterable[str], image: ClusterImage) -> dict[TopicId, int]:
    """Partition counts by topic id, of those that exist, in the order of their names."""
    return {topic.topic_id: len(topic.partitions) for topic in _existing(sorted(names), image)}


def metadata_hash(names: Collection[str], image: ClusterImage) -> int:
    """0 when none of the topics exists."""
    digest = hashlib.blake2b(digest_size=_HASH_BYTES)
    is_any = False
    for topic in _existing(sorted(names), image):
        is_any = True
        digest.update(topic.topic_id.bytes)
        digest.update(len(topic.partitions).to_bytes(4, "big"))
    return int.from_bytes(digest.digest(), "big", signed=True) if is_any else 0


def _existing(names: Iterable[str], image: ClusterImage) -> Iterable[TopicImage]:
    for name in names:
        topic = image.topics.get(name)
        if topic is not None:
            yield topic
