"""Keeps partitions as the brokers allow: led where a replica in sync is alive; finishes half-made topics.

At the beginning of a term, and whenever brokers have come or gone. Elections are written one by one, each
against the version that was decided on: one that is contradicted is decided again and undoes no other. Not
here: which state a partition should have (`leadership`).
"""

import logging
from collections.abc import Iterable
from typing import Final

from riverlog.controller import writes
from riverlog.controller.candidacy import Term
from riverlog.controller.decisions import NOT_CONTROLLER, Refusal
from riverlog.controller.leadership import Leadership, NewState, decide_states
from riverlog.controller.term_writes import TermWrites
from riverlog.metadata import layout
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.image_builder import ROOTS
from riverlog.model.metadata_store import Delete, MetadataStore, Operation

_logger = logging.getLogger(__name__)
_ROUNDS_MAX: Final = 5
_REMEMBERED_MAX: Final = 1000


class Caretaker:
    def __init__(
        self, store: MetadataStore, follower: MetadataFollower, term_writes: TermWrites, *, is_alone: bool
    ) -> None:
        self._store = store
        self._follower = follower
        self._writes = term_writes
        self._is_alone = is_alone
        self._to_delete: set[str] = set()
        """Topics that are marked to be deleted, state by state, which may have begun."""

    def leadership(self, term: Term) -> Leadership:
        return Leadership(self._follower.image.brokers, term.epoch, self._is_alone)

    async def take_over(self, term: Term) -> Refusal | None:
        """Finish what a controller before has left half done. Returns what kept something from being done."""
        if not self._is_alone:
            await self._store.sync()
            await self._follower.refresh(ROOTS)
            self._to_delete = set(await self._store.children(layout.TOPICS_TO_DELETE))
            await self._forget_deleted(term)
        return await self.settle(term)

    async def settle(self, term: Term, topics: Iterable[str] | None = None) -> Refusal | None:
        """Write the states that these topics, or all, should have; return when the image shows them, or what
        kept some of them from being written."""
        refusal = None
        for topic in sorted(self._to_delete) if topics is None else ():
            refusal = await self.delete_in_pieces(term, topic) or refusal
        for _ in range(_ROUNDS_MAX):
            needed = self._needed(term, topics)
            if not needed:
                return refusal
            refusal = await self._write(term, needed)
            if refusal is NOT_CONTROLLER:
                return refusal
            await self._follower.refresh(
                layout.partition_state(state.topic, state.partition) for state in needed
            )
        return refusal

    async def delete_in_pieces(self, term: Term, topic: str) -> Refusal | None:
        """Remove a topic that is marked to be deleted, state by state, and the mark at last."""
        self._to_delete.add(topic)
        present = await self._store.tree(layout.topic(topic))
        pieces = writes.in_pieces(writes.removed_states(topic, present), self._store.multi_bytes_max)
        for piece in pieces:
            refusal = await self._writes.write(term, piece)
            if refusal is not None:
                return refusal
        mark: Operation = Delete(layout.topic_to_delete(topic))
        refusal = await self._writes.write(term, [*(writes.end(topic) if present else []), mark])
        if refusal is None:
            self._to_delete.discard(topic)
            await self._follower.refresh(writes.paths_of(topic))
        return refusal

    async def _forget_deleted(self, term: Term) -> None:
        """Of topics that are gone only the last are remembered. A broker that was away for longer sets the
        logs of the others aside, instead of deleting them."""
        deleted = await self._store.tree(layout.DELETED_TOPICS)
        deleted.pop(layout.DELETED_TOPICS, None)
        oldest = sorted(deleted, key=lambda path: deleted[path].created)[:-_REMEMBERED_MAX]
        for piece in writes.in_pieces(([Delete(path)] for path in oldest), self._store.multi_bytes_max):
            await self._writes.write(term, piece)

    def _needed(self, term: Term, topics: Iterable[str] | None) -> list[NewState]:
        image = self._follower.image
        concerned = [
            name for name in (image.topics if topics is None else topics) if name not in self._to_delete
        ]
        return list(decide_states(image, self.leadership(term), concerned))

    async def _write(self, term: Term, needed: list[NewState]) -> Refusal | None:
        """First states in as few writes as possible; elections by themselves, because a leader may change
        its state meanwhile."""
        first = writes.states(state for state in needed if state.expected_version is None)
        elections = list(writes.states(state for state in needed if state.expected_version is not None))
        pieces = [*writes.in_pieces(first, self._store.multi_bytes_max), *elections]
        if elections:
            _logger.info("Electing leaders of %d partitions", len(elections))
        outcomes = await self._writes.write_each(term, pieces)
        return next((outcome for outcome in outcomes if outcome is not None), None)
