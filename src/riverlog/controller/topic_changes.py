"""Carries out what is decided about topics: made, grown, deleted.

Each request is one transaction of the store, all or nothing, as long as it fits into one. A larger one is
carried out topic by topic, and of a large topic the node comes first and the states of its partitions follow
in pieces, which the next controller makes if this one does not come to it: only small topics are never seen
without their partitions. Not here: the decisions themselves.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple
from uuid import UUID

from riverlog.controller import writes
from riverlog.controller.caretaker import Caretaker
from riverlog.controller.decisions.added_partitions import (
    AddedPartitions,
    AddedPartitionsPlan,
    decide_added_partitions,
)
from riverlog.controller.decisions.candidacy import Term
from riverlog.controller.decisions.deletion import Deletion, TopicToDelete, decide_deletions
from riverlog.controller.decisions.refusals import Refusal
from riverlog.controller.decisions.topics import NewTopic, TopicPlan, TopicRules, decide_creations
from riverlog.controller.term_writes import TermWrites
from riverlog.metadata import layout
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.image import TopicImage
from riverlog.model.metadata_store import MetadataStore, Operation, bytes_of


class _Change(NamedTuple):
    topic: str
    partitions: int
    """How many get states by it."""
    whole: Sequence[Operation]
    beginning: Sequence[Operation]
    """What is written where the whole is too large; the states are missing then."""


class TopicChanges:
    def __init__(
        self,
        store: MetadataStore,
        follower: MetadataFollower,
        term_writes: TermWrites,
        caretaker: Caretaker,
        *,
        rules: Callable[[], TopicRules],
        new_id: Callable[[], UUID],
        start: Callable[[], int],
        wall_ms: Callable[[], int],
        is_alone: bool,
    ) -> None:
        """`start` is a random number from which new partitions are placed."""
        self._store = store
        self._follower = follower
        self._writes = term_writes
        self._caretaker = caretaker
        self._rules = rules
        self._new_id = new_id
        self._start = start
        self._wall_ms = wall_ms
        self._is_alone = is_alone

    async def create(
        self, term: Term, wanted: Sequence[NewTopic], *, validate_only: bool
    ) -> list[TopicPlan | Refusal]:
        image = self._follower.image
        outcomes = decide_creations(image, wanted, self._rules(), new_id=self._new_id, start=self._start)
        plans = [outcome for outcome in outcomes if isinstance(outcome, TopicPlan)]
        if not plans or validate_only:
            return outcomes
        leadership = self._caretaker.leadership(term)
        failures = await self._carry_out(
            term,
            [
                _Change(
                    plan.name, len(plan.replicas), writes.creation(plan, leadership), writes.beginning(plan)
                )
                for plan in plans
            ],
        )
        await self._caretaker.settle(term, [plan.name for plan in plans])
        return [failures.get(each.name, each) if isinstance(each, TopicPlan) else each for each in outcomes]

    async def grow(
        self, term: Term, wanted: Sequence[AddedPartitions], *, validate_only: bool
    ) -> list[AddedPartitionsPlan | Refusal]:
        image = self._follower.image
        outcomes = decide_added_partitions(image, wanted, start=self._start)
        plans = [outcome for outcome in outcomes if isinstance(outcome, AddedPartitionsPlan)]
        if not plans or validate_only:
            return outcomes
        leadership = self._caretaker.leadership(term)
        changes: list[_Change] = []
        for plan in plans:
            topic, node = image.topics[plan.name], await self._store.get(layout.topic(plan.name))
            version = None if node is None else node.version
            whole = writes.added_partitions(topic, plan.added, leadership, version)
            changes.append(_Change(plan.name, len(plan.added), whole, whole[:1]))
        failures = await self._carry_out(term, changes)
        await self._caretaker.settle(term, [plan.name for plan in plans])
        return [
            failures.get(each.name, each) if isinstance(each, AddedPartitionsPlan) else each
            for each in outcomes
        ]

    async def delete(self, term: Term, to_delete: Sequence[TopicToDelete]) -> list[Deletion]:
        image = self._follower.image
        deletions = decide_deletions(image, to_delete)
        topics = [
            image.topics[deletion.name]
            for deletion in deletions
            if deletion.refusal is None and deletion.name is not None
        ]
        if not topics:
            return deletions
        failures = await self._carry_out(
            term,
            [
                _Change(
                    topic.name,
                    len(topic.partitions),
                    [*writes.deletion(topic), *self._remembered(topic)],
                    [writes.mark_to_delete(topic.name), *self._remembered(topic)],
                )
                for topic in topics
            ],
        )
        for topic in topics:
            if topic.name in self._follower.image.topics and topic.name not in failures:
                refusal = await self._caretaker.delete_in_pieces(term, topic.name)
                if refusal is not None:
                    failures[topic.name] = refusal
        return [each._replace(refusal=each.refusal or failures.get(each.name or "")) for each in deletions]

    def _remembered(self, topic: TopicImage) -> list[Operation]:
        """For brokers that are away. A node that is alone is not away from its own store."""
        return [] if self._is_alone else [writes.remember_deleted(topic, self._wall_ms())]

    async def _carry_out(self, term: Term, changes: Sequence[_Change]) -> dict[str, Refusal]:
        """Returns what was refused, by topic, when the image shows the rest."""
        whole = [operation for change in changes for operation in change.whole]
        topics = [change.topic for change in changes]
        if self._fits(sum(change.partitions for change in changes), whole):
            outcomes = [await self._writes.write(term, whole)] * len(changes)
        else:
            outcomes = await self._writes.write_each(term, [self._first_piece(each) for each in changes])
        failures = {
            topic: outcome for topic, outcome in zip(topics, outcomes, strict=True) if outcome is not None
        }
        if len(failures) < len(changes):
            await self._follower.refresh(path for topic in topics for path in writes.paths_of(topic))
        return failures

    def _first_piece(self, change: _Change) -> Sequence[Operation]:
        return change.whole if self._fits(change.partitions, change.whole) else change.beginning

    def _fits(self, partitions: int, operations: Sequence[Operation]) -> bool:
        if self._is_alone:
            return True
        return partitions <= writes.STATES_AT_ONCE_MAX and bytes_of(operations) <= self._store.multi_bytes_max
