"""The write with which a leader changes the ISR of its partition: one step with everything that it rests on.

It is refused unless topic and state are those that were decided on, this broker is registered as it was when
it was elected, and each replica that comes in is registered as its fetches say and has told nothing new of
itself (KIP-841, KIP-903), as that it is about to leave or that its disk has failed. So neither a leader that
was followed by another can change the ISR, nor a process that has ended be taken into it. An answer that is
lost is read again until it is known.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from riverlog.metadata import layout
from riverlog.metadata.image import PartitionImage
from riverlog.metadata.partition_states import after_isr_change
from riverlog.metadata.payloads import encode_partition, uuid_text
from riverlog.model.ids import NodeId, TopicId, TopicPartition
from riverlog.model.metadata_store import (
    Check,
    Create,
    Delete,
    MetadataStore,
    Operation,
    OutcomeUnknownError,
    SessionLostError,
    Set,
    StoreError,
)

RETRY_MIN_S: Final = 0.05
RETRY_MAX_S: Final = 1.0


class IsrWrite(NamedTuple):
    topic_partition: TopicPartition
    topic_id: TopicId
    image: PartitionImage
    """As it was decided on."""
    isr: tuple[NodeId, ...]
    joining: Sequence[tuple[NodeId, int]]
    """Who comes in, with the broker epoch that its fetches carry."""
    min_isr: int
    told: Mapping[NodeId, int] = {}
    """The version of the registration of each that comes in, as it was decided on; 0 where it is not here."""


def operations_of(write: IsrWrite) -> list[Operation]:
    image = write.image
    assert image.leader is not None
    assert image.leader in write.isr
    path = layout.partition_state(*write.topic_partition)
    data = encode_partition(after_isr_change(image, write.isr, write.min_isr))
    return [
        Check(layout.registration(image.leader), image.leader_broker_epoch),
        Check(layout.broker(image.leader)),
        *(Check(layout.registration(node_id), epoch) for node_id, epoch in write.joining),
        *(Check(layout.broker(node_id), write.told.get(node_id, 0)) for node_id, _ in write.joining),
        *_not_deleted(write.topic_id),
        Set(path, data, image.partition_epoch),
    ]


def _not_deleted(topic_id: TopicId) -> list[Operation]:
    """That the topic is still there. The state of one that was made anew under its name has the same path and
    comes by the same versions, so its version alone would let in what was decided about the topic before it.
    What has been deleted is remembered by its id, and the memory of it cannot be made twice."""
    memory = layout.deleted_topic(uuid_text(topic_id))
    return [Create(memory), Delete(memory)]


async def write_isr(store: MetadataStore, write: IsrWrite, jitter: Callable[[], float]) -> bool:
    """Whether it was carried out. Returns only when that is known, however long the store is away."""
    try:
        await store.multi(operations_of(write))
    except (OutcomeUnknownError, SessionLostError):
        return await _was_written(store, write, jitter)
    except StoreError:
        return False
    return True


async def _was_written(store: MetadataStore, write: IsrWrite, jitter: Callable[[], float]) -> bool:
    """By the version of the state, which another's write has raised as well: the image tells whose it was.
    Once a store has answered a `sync` nothing that was sent before can still be carried out."""
    path, retry_s = layout.partition_state(*write.topic_partition), RETRY_MIN_S
    while True:
        try:
            await store.sync()
            node = await store.get(path)
        except StoreError:
            await asyncio.sleep(retry_s * (0.5 + jitter()))
            retry_s = min(2 * retry_s, RETRY_MAX_S)
        else:
            return node is not None and node.version > write.image.partition_epoch
