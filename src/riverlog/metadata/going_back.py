"""Whether a metadata store shows an older state than it did, by what is in it. Pure.

A store that was restored from a backup need not have lower numbers of transactions: an ensemble that starts
anew begins above all that its backup has seen. But states of partitions go back, and topics are gone that
nobody has deleted. Roles, ISRs and deletions that follow from such a state would undo what was promised.
"""

from collections.abc import Collection
from typing import Final

from riverlog.metadata.delta import ImageDelta
from riverlog.metadata.image import PartitionImage
from riverlog.metadata.payloads import uuid_text

REMEMBERED_MAX: Final = 10_000
"""Of so many deleted topics the ids are kept; of more it cannot be said which were deleted."""


def why_states_are_older(delta: ImageDelta) -> str | None:
    for topic, changes in delta.partitions.items():
        for index, before, after in changes:
            if before is not None and _is_older(before, after):
                return (
                    f"the state of {topic}-{index} was of leader epoch {before.leader_epoch}, version "
                    f"{before.partition_epoch}, and is of {after.leader_epoch}, {after.partition_epoch}"
                )
    return None


def why_topics_are_missing(delta: ImageDelta, deleted: Collection[str]) -> str | None:
    """`deleted`: the ids of those of which it is known."""
    if len(deleted) >= REMEMBERED_MAX:
        return None
    gone = delta.deleted.values()
    missing = sorted(topic.name for topic in gone if uuid_text(topic.topic_id) not in deleted)
    return f"{', '.join(missing)} is gone and was not deleted" if missing else None


def _is_older(before: PartitionImage, after: PartitionImage) -> bool:
    """There is none any more while a topic is deleted piece by piece."""
    if after.partition_epoch < 0:
        return False
    return after.partition_epoch < before.partition_epoch or after.leader_epoch < before.leader_epoch
