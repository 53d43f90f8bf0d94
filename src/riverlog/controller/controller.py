"""The controller of a cluster, or a broker that may become it: takes requests for changes, one at a time.

Every write checks the controller's term, so that a controller which has been replaced changes nothing. A
call returns when the local image shows its outcome, which is also when the local partitions follow it. What
the store cannot write, as on a full disk, is refused and changes nothing. While this broker is the
controller, it also gives partitions their leaders when brokers come and go. Not here: the decisions, and how
they are carried out.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Sequence
from random import Random
from typing import Any, Final, TypeVar
from uuid import UUID

from riverlog.controller.caretaker import Caretaker
from riverlog.controller.decisions.added_partitions import AddedPartitions, AddedPartitionsPlan
from riverlog.controller.decisions.candidacy import Term
from riverlog.controller.decisions.deletion import Deletion, TopicToDelete
from riverlog.controller.decisions.elections import Election
from riverlog.controller.decisions.features import FeatureUpdate
from riverlog.controller.decisions.leadership import DEFAULT_RULES, ElectionRules
from riverlog.controller.decisions.refusals import NOT_CONTROLLER, Refusal
from riverlog.controller.decisions.topics import NewTopic, TopicPlan, TopicRules
from riverlog.controller.gauges import ControllerGauges
from riverlog.controller.leader_changes import Elected, LeaderChanges
from riverlog.controller.office import Office
from riverlog.controller.setting_changes import ConfigChange, SettingChanges
from riverlog.controller.term_writes import TermWrites
from riverlog.controller.topic_changes import TopicChanges
from riverlog.metadata.delta import ImageDelta
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.image import ClusterImage, ResourceType
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId, TopicPartition
from riverlog.model.metadata_store import MetadataStore, StoreError
from riverlog.model.metrics import Metrics, NoMetrics

_logger = logging.getLogger(__name__)
_SETTLE_AGAIN_S: Final = 1.0
T = TypeVar("T")


class Controller:
    def __init__(
        self,
        store: MetadataStore,
        follower: MetadataFollower,
        node_id: NodeId,
        *,
        rules: Callable[[], TopicRules],
        new_id: Callable[[], UUID],
        random: Random,
        wall_ms: Callable[[], int],
        election_rules: Callable[[ClusterImage, str], ElectionRules] = lambda image, topic: DEFAULT_RULES,
        metrics: Metrics | None = None,
        is_alone: bool = False,
    ) -> None:
        """`election_rules` are those of a topic, by its name. `is_alone`: the store is this node's own, and
        no other broker can come."""
        metrics = metrics or NoMetrics()
        ControllerGauges(metrics, follower, lambda: self.is_active)
        self._follower = follower
        self._office = Office(store, follower, node_id, wall_ms=wall_ms, take_over=self._take_over)
        self._writes = term_writes = TermWrites(store, self._office)
        self._caretaker = Caretaker(
            store,
            follower,
            term_writes,
            rules=election_rules,
            metrics=metrics,
            wall_ms=wall_ms,
            is_alone=is_alone,
        )
        self._leaders = LeaderChanges(follower, self._caretaker)
        self._topics = TopicChanges(
            store,
            follower,
            term_writes,
            self._caretaker,
            rules=rules,
            new_id=new_id,
            start=lambda: random.randrange(2**16),
            wall_ms=wall_ms,
            is_alone=is_alone,
        )
        self._settings = SettingChanges(store, follower, term_writes, self._leaders)
        self._turn = asyncio.Lock()
        self._running: set[asyncio.Task[Any]] = set()
        self._again: asyncio.TimerHandle | None = None
        self._is_closing = False

    @property
    def is_active(self) -> bool:
        """Whether this broker is the controller now."""
        return self._office.term is not None

    async def start(self) -> None:
        """Become the controller, under an epoch of its own, or wait until the one there is has gone."""
        await self._office.start()
        self._follower.subscribe(self._on_image)
        self._settle_soon()

    async def close(self, *, vacates: bool = False) -> None:
        """Wait for what has been begun; nothing more is. `vacates`: have another broker follow at once."""
        self._is_closing = True
        if self._again is not None:
            self._again.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await self._office.close(vacates=vacates)

    async def create_topics(
        self, wanted: Sequence[NewTopic], *, validate_only: bool = False
    ) -> list[TopicPlan | Refusal]:
        """An outcome for each topic, in the same order."""
        return await self._in_turn(
            lambda term: self._topics.create(term, wanted, validate_only=validate_only),
            lambda refusal: [refusal] * len(wanted),
        )

    async def create_partitions(
        self, wanted: Sequence[AddedPartitions], *, validate_only: bool = False
    ) -> list[AddedPartitionsPlan | Refusal]:
        """An outcome for each topic, in the same order."""
        return await self._in_turn(
            lambda term: self._topics.grow(term, wanted, validate_only=validate_only),
            lambda refusal: [refusal] * len(wanted),
        )

    async def delete_topics(self, to_delete: Sequence[TopicToDelete]) -> list[Deletion]:
        """An outcome for each topic that was named, in no particular order."""
        return await self._in_turn(
            lambda term: self._topics.delete(term, to_delete),
            lambda refusal: [Deletion(each.name, each.topic_id, refusal) for each in to_delete],
        )

    async def alter_configs(
        self, changes: Sequence[ConfigChange], *, validate_only: bool = False
    ) -> list[Refusal | None]:
        """`None` for each change that was made, in the same order. No resource may occur twice."""
        return await self._in_turn(
            lambda term: self._settings.alter_configs(term, changes, validate_only=validate_only),
            lambda refusal: [refusal] * len(changes),
        )

    async def elect_leaders(self, kind: Election, wanted: Collection[TopicPartition] | None) -> Elected:
        """An outcome for each partition; with `None` for all, without those that need no election."""
        return await self._in_turn(
            lambda term: self._leaders.elect(term, kind, wanted),
            lambda refusal: dict.fromkeys(wanted or (), refusal),
        )

    async def rebalance_leaders(self) -> None:
        """Some partitions that are not led by their preferred replicas are from now on, if these can."""
        if self.is_active:
            await self._in_turn(self._leaders.rebalance, lambda refusal: 0)

    async def update_features(
        self, updates: Sequence[FeatureUpdate], *, validate_only: bool = False
    ) -> Refusal | None:
        """`None` when all of them were made."""
        return await self._in_turn(
            lambda term: self._settings.update_features(term, updates, validate_only=validate_only),
            lambda refusal: refusal,
        )

    async def unregister_broker(self, node_id: int) -> Refusal | None:
        """`None` when the broker is forgotten."""
        return await self._in_turn(
            lambda term: self._settings.unregister_broker(term, node_id), lambda refusal: refusal
        )

    async def _in_turn(self, work: Callable[[Term], Awaitable[T]], refused: Callable[[Refusal], T]) -> T:
        """Finish even if the caller goes away: the next decision needs an image that shows this one."""

        async def take_turn() -> T:
            async with self._turn:
                refusal = await self._writes.look_again(self._follower)
                if (term := self._office.term) is None:
                    return refused(NOT_CONTROLLER)
                return await work(term) if refusal is None else refused(refusal)

        return await asyncio.shield(self._begin(take_turn()))

    def _begin(self, work: Coroutine[None, None, T]) -> "asyncio.Task[T]":
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def _take_over(self, term: Term) -> None:
        async with self._turn:
            self._look_again_after(await self._caretaker.take_over(term))

    def _on_image(self, delta: ImageDelta) -> None:
        if delta.old.brokers != delta.new.brokers or delta.changes_configs_of(ResourceType.BROKER):
            self._settle_soon()
        elif topics := {*_left_by_their_leaders(delta), *_configured_anew(delta)}:
            self._settle_soon(topics)

    def _settle_soon(self, topics: Collection[str] | None = None) -> None:
        if self.is_active and not self._is_closing:
            self._begin(self._settle(topics))

    async def _settle(self, topics: Collection[str] | None) -> None:
        async with self._turn:
            refusal = await self._writes.look_again(self._follower)
            if (term := self._office.term) is None:
                return
            if refusal is not None:
                self._look_again_after(refusal)
                return
            try:
                self._look_again_after(await self._caretaker.settle(term, topics))
            except StoreError as error:
                self._look_again_after(Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)))

    def _look_again_after(self, refusal: Refusal | None) -> None:
        if refusal is not None and refusal is not NOT_CONTROLLER:
            _logger.warning("Some partitions have not got their leaders: %s", refusal.message)
            if self._again is not None:
                self._again.cancel()
            if not self._is_closing:
                loop = asyncio.get_running_loop()
                self._again = loop.call_later(_SETTLE_AGAIN_S, self._settle_soon)


def _left_by_their_leaders(delta: ImageDelta) -> Iterable[str]:
    """Topics with partitions that somebody else has left without a leader, as a broker that gives up does."""
    return (
        topic
        for topic, changes in delta.partitions.items()
        if any(change.after.leader is None for change in changes)
    )


def _configured_anew(delta: ImageDelta) -> Iterable[str]:
    return (resource.name for resource in delta.configs if resource.type is ResourceType.TOPIC)
