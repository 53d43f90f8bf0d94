"""Producer ids that no other producer of the cluster has or had.

A broker takes a block of them from the store at a time and hands them out one by one; a block that a crash
cut short, or of which it is not known whether it was taken, is lost, never reused. The next block is taken
before the present one is used up, so that a store which is away for a while is not noticed; when no id is
left and none can be had soon, that is an error, and whoever asked asks again. Nor is one taken from a store
that has gone back to an older state, in which blocks are free that have been given out; where that was found
too late, the next ones are above all of them (`begin_above_all`).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from riverlog.metadata import layout, payloads
from riverlog.model.errors import RiverlogError
from riverlog.model.ids import PRODUCER_IDS_PER_MS, NodeId, ProducerId
from riverlog.model.metadata_store import (
    BadVersionError,
    MetadataStore,
    NodeExistsError,
    OutcomeUnknownError,
    SessionState,
    StoreError,
)

BLOCK_SIZE: Final = 1000
_TAKE_NEXT_AT: Final = BLOCK_SIZE // 10
"""So many ids are left when the next block is taken, as in Apache Kafka."""
_PATIENCE_S: Final = 2.0
"""How long one who asks waits for a block."""

_logger = logging.getLogger(__name__)


class NoProducerIdError(RiverlogError):
    """The store gives no block of ids now; a later try may succeed."""


class ProducerIds:
    """Everything that it starts ends with `close`."""

    def __init__(
        self, store: MetadataStore, node_id: NodeId, *, follow: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """`follow` returns when what the store shows is followed, which an older state never is."""
        self._store = store
        self._node_id = node_id
        self._follow = follow
        self._present: range = range(0)
        self._ahead: range | None = None
        self._taking: asyncio.Task[None] | None = None
        self._is_to_sync = False
        self._least = 0
        self._watching = store.watch_session(self._on_session)

    async def next_producer_id(self) -> ProducerId:
        """Raises `NoProducerIdError`."""
        while not self._present:
            if self._ahead is not None:
                self._present, self._ahead = self._ahead, None
            else:
                await self._wait_for_block()
        found, self._present = self._present[0], self._present[1:]
        if len(self._present) <= _TAKE_NEXT_AT and self._ahead is None:
            self._take_ahead()
        return ProducerId(found)

    def begin_above_all(self, now_ms: int) -> None:
        """What the store says was given out is not all that was. It is told so at once, by a block that is
        taken, for those who do not know it."""
        self._least = now_ms * PRODUCER_IDS_PER_MS
        self._present, self._ahead = range(0), None
        self._take_ahead()

    async def close(self) -> None:
        self._watching.stop()
        if self._taking is not None:
            self._taking.cancel()
            await asyncio.gather(self._taking, return_exceptions=True)

    def _on_session(self, state: SessionState) -> None:
        if state is SessionState.CONNECTED:
            self._is_to_sync = True  # It may be another store than it was.

    async def _wait_for_block(self) -> None:
        """All who ask meanwhile wait for the same block."""
        taking = self._take_ahead()
        await asyncio.wait([taking], timeout=_PATIENCE_S)
        if not taking.done():
            raise NoProducerIdError(
                "the store does not answer, or not with its newest state, and no producer id is left"
            )
        error = None if taking.cancelled() else taking.exception()
        if error is not None:
            raise NoProducerIdError(f"no producer ids can be had: {error}") from error

    def _take_ahead(self) -> "asyncio.Task[None]":
        if self._taking is None:
            self._taking = asyncio.create_task(self._take_block(), name="take producer ids")
            self._taking.add_done_callback(self._on_taken)
        return self._taking

    def _on_taken(self, taking: "asyncio.Task[None]") -> None:
        self._taking = None
        error = None if taking.cancelled() else taking.exception()
        if error is not None:
            level = logging.WARNING if isinstance(error, StoreError) else logging.ERROR
            _logger.log(level, "the next producer ids cannot be taken: %s", error)

    async def _take_block(self) -> None:
        """A block that is ours from then on. Tries again when another broker was quicker."""
        path = layout.PRODUCER_ID_BLOCK
        while True:
            while self._is_to_sync:
                await self._sync()
            node = await self._store.get(path)
            next_free = 0 if node is None else payloads.decode_producer_ids(path, node.data)[1] + 1
            first = max(next_free, self._least)
            block = payloads.encode_producer_ids(self._node_id, first, first + BLOCK_SIZE - 1)
            try:
                if node is None:
                    await self._store.create(path, block)
                else:
                    await self._store.set(path, block, expected_version=node.version)
            except (BadVersionError, NodeExistsError, OutcomeUnknownError):
                await self._store.sync()
                continue
            if first >= self._least and not self._is_to_sync:
                self._ahead = range(first, first + BLOCK_SIZE)
                return

    async def _sync(self) -> None:
        """A session that comes meanwhile is to be synced anew."""
        self._is_to_sync = False
        try:
            await self._store.sync()
            if self._follow is not None:
                await self._follow()
        except BaseException:
            self._is_to_sync = True
            raise
