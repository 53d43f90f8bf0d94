"""Keeps partitions as the brokers allow: led where a replica in sync is alive; finishes half-made topics.

At the beginning of a term, and whenever brokers have come or gone. States are changed one by one, each
against the version that was decided on: a change that is contradicted is decided again and undoes no other.
Not here: which state a partition should have (`leadership`).
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from riverlog.controller import writes
from riverlog.controller.decisions.candidacy import Term
from riverlog.controller.decisions.leadership import ElectionRules, Leadership, NewState, decide_states
from riverlog.controller.decisions.refusals import NOT_CONTROLLER, Refusal
from riverlog.controller.term_writes import TermWrites
from riverlog.metadata import layout, payloads
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.going_back import REMEMBERED_MAX
from riverlog.metadata.image import ClusterImage
from riverlog.metadata.image_builder import ROOTS
from riverlog.model.errors import ErrorCode
from riverlog.model.metadata_store import Delete, MetadataStore, Operation
from riverlog.model.metrics import Metrics

_logger = logging.getLogger(__name__)
_ROUNDS_MAX: Final = 5
_STILL_CHANGING: Final = Refusal(
    ErrorCode.UNKNOWN_SERVER_ERROR, "Brokers come and go, or leaders change, as fast as leaders are chosen."
)
_REMEMBERED_MS: Final = 30 * 24 * 60 * 60 * 1000


class Caretaker:
    def __init__(
        self,
        store: MetadataStore,
        follower: MetadataFollower,
        term_writes: TermWrites,
        *,
        rules: Callable[[ClusterImage, str], ElectionRules],
        metrics: Metrics,
        wall_ms: Callable[[], int],
        is_alone: bool,
    ) -> None:
        self._store = store
        self._follower = follower
        self._writes = term_writes
        self._rules = rules
        self._wall_ms = wall_ms
        self._is_alone = is_alone
        self._unclean_elections = metrics.counter("riverlog_unclean_elections_total")
        self._to_delete: set[str] = set()
        """Topics that are marked to be deleted, state by state, which may have begun."""

    def leadership(self, term: Term) -> Leadership:
        image = self._follower.image
        return Leadership(image.brokers, term.epoch, self._is_alone, lambda topic: self._rules(image, topic))

    async def take_over(self, term: Term) -> Refusal | None:
        """Finish what a controller before has left half done. Returns what kept something from being done."""
        if not self._is_alone:
            await self._store.sync()
            await self._follower.refresh(ROOTS)
            self._to_delete = set(await self._store.children(layout.TOPICS_TO_DELETE))
            await self._forget_deleted(term)
        refusal = await self.settle(term)
        if refusal is None and self._needed(term, None):
            return _STILL_CHANGING  # What was heard of meanwhile was nobody's yet to act on.
        return refusal

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
            outcomes = await self.write(term, needed)
            refusal = next((outcome for outcome in outcomes if outcome is not None), None)
            if refusal is NOT_CONTROLLER:
                return refusal
        return refusal

    async def write(self, term: Term, states: Sequence[NewState]) -> list[Refusal | None]:
        """First states in as few writes as possible; others so that one that its leader changes meanwhile
        leaves the rest as they are. Returns when the image shows them."""
        if not states:
            return []
        first = [state for state in states if state.expected_version is None]
        others = [state for state in states if state.expected_version is not None]
        pieces = [*writes.in_pieces(writes.states(first), self._store.multi_bytes_max)]
        if others:
            _logger.info("Changing who leads or is in sync: %d partitions", len(others))
        image = self._follower.image
        outcomes = await self._writes.write_each(term, pieces)
        outcomes += await self._writes.write_changes(term, [*writes.states(others)])
        for state, outcome in zip(others, outcomes[len(pieces) :], strict=True):
            before = image.partition(state.topic, state.partition)
            if outcome is None and before is not None and state.node.unclean_epoch != before.unclean_epoch:
                self._note_unclean(state)
        if NOT_CONTROLLER not in outcomes:
            await self._follower.refresh(
                layout.partition_state(state.topic, state.partition) for state in states
            )
        return outcomes

    def _note_unclean(self, state: NewState) -> None:
        self._unclean_elections.add()
        _logger.warning(
            "Unclean election: broker %d leads %s-%d under epoch %d without all that was committed; what it "
            "lacks is lost",
            state.node.leader,
            state.topic,
            state.partition,
            state.node.leader_epoch,
        )

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
        """Topics that are gone are remembered for 30 days, the last 10,000 at most. A broker that was away
        for longer sets the logs of the others aside, instead of deleting them."""
        deleted = await self._store.tree(layout.DELETED_TOPICS)
        deleted.pop(layout.DELETED_TOPICS, None)
        since_ms = self._wall_ms() - _REMEMBERED_MS
        in_order = sorted(deleted, key=lambda path: deleted[path].created)
        gone = in_order[:-REMEMBERED_MAX]
        for path in in_order[-REMEMBERED_MAX:]:
            deleted_ms = payloads.decode_deletion_ms(path, deleted[path].data)
            if deleted_ms is not None and deleted_ms < since_ms:
                gone.append(path)
        for piece in writes.in_pieces(([Delete(path)] for path in gone), self._store.multi_bytes_max):
            await self._writes.write(term, piece)

    def _needed(self, term: Term, topics: Iterable[str] | None) -> list[NewState]:
        image = self._follower.image
        concerned = [
            name for name in (image.topics if topics is None else topics) if name not in self._to_delete
        ]
        return list(decide_states(image, self.leadership(term), concerned))
