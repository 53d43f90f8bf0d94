"""Producer ids that no other producer of the cluster has or had.

A broker takes a block of them from the store at a time and hands them out one by one; a block that a crash
cut short, or of which it is not known whether it was taken, is lost, never reused.
"""

import asyncio
from typing import Final

from riverlog.metadata import layout, payloads
from riverlog.model.ids import NodeId, ProducerId
from riverlog.model.metadata_store import (
    BadVersionError,
    MetadataStore,
    NodeExistsError,
    OutcomeUnknownError,
)

BLOCK_SIZE: Final = 1000


class ProducerIds:
    def __init__(self, store: MetadataStore, node_id: NodeId) -> None:
        self._store = store
        self._node_id = node_id
        self._next = 0
        self._end = 0
        self._turn = asyncio.Lock()

    async def next_producer_id(self) -> ProducerId:
        async with self._turn:
            if self._next == self._end:
                self._next = await self._take_block()
                self._end = self._next + BLOCK_SIZE
            self._next += 1
            return ProducerId(self._next - 1)

    async def _take_block(self) -> int:
        """The first id of a block that is now ours. Tries again when another broker was quicker."""
        path = layout.PRODUCER_ID_BLOCK
        while True:
            node = await self._store.get(path)
            first = 0 if node is None else payloads.decode_producer_ids(path, node.data)[1] + 1
            block = payloads.encode_producer_ids(self._node_id, first, first + BLOCK_SIZE - 1)
            try:
                if node is None:
                    await self._store.create(path, block)
                else:
                    await self._store.set(path, block, expected_version=node.version)
            except (BadVersionError, NodeExistsError, OutcomeUnknownError):
                continue
            return first
