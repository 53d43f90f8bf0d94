"""Carries out decisions about the cluster: one at a time, each as one transaction of the metadata store.

Every write checks the controller's epoch, so that a controller which has been replaced changes nothing. A
call returns when the local image shows its outcome, which is also when the local partitions follow it. What
the store cannot write, as on a full disk, is refused and changes nothing. Not here: the decisions themselves.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from riverlog.controller import writes
from riverlog.controller.added_partitions import AddedPartitions, AddedPartitionsPlan, decide_added_partitions
from riverlog.controller.candidacy import Term
from riverlog.controller.decisions import NOT_CONTROLLER, Refusal
from riverlog.controller.deletion import Deletion, TopicToDelete, decide_deletions
from riverlog.controller.features import FeatureUpdate, decide_features
from riverlog.controller.office import Office
from riverlog.controller.topics import NewTopic, TopicPlan, TopicRules, decide_creations
from riverlog.metadata import layout, payloads
from riverlog.metadata.config_nodes import config_path
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.image import ClusterImage, ConfigResource
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId
from riverlog.model.metadata_store import (
    BadVersionError,
    Create,
    MetadataStore,
    Operation,
    Set,
    StoreWriteError,
)

_logger = logging.getLogger(__name__)
T = TypeVar("T")


class ConfigChange(NamedTuple):
    """Settings to be replaced. `decide` is called with the image the write will be based on."""

    resource: ConfigResource
    decide: Callable[[ClusterImage], Mapping[str, str] | Refusal]


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
    ) -> None:
        self._store = store
        self._follower = follower
        self._rules = rules
        self._new_id = new_id
        self._random = random
        self._office = Office(store, follower, node_id, wall_ms)
        self._turn = asyncio.Lock()
        self._running: set[asyncio.Task[Any]] = set()

    @property
    def is_active(self) -> bool:
        """Whether this broker is the controller now."""
        return self._office.term is not None

    async def start(self) -> None:
        """Become the controller, under an epoch of its own, or wait until the one there is has gone."""
        await self._office.start()

    async def close(self) -> None:
        """Wait for what has been begun."""
        await asyncio.gather(*self._running, return_exceptions=True)
        await self._office.close()

    async def create_topics(
        self, wanted: Sequence[NewTopic], *, validate_only: bool = False
    ) -> list[TopicPlan | Refusal]:
        """An outcome for each topic, in the same order."""
        return await self._to_the_end(self._create_topics(wanted, validate_only))

    async def create_partitions(
        self, wanted: Sequence[AddedPartitions], *, validate_only: bool = False
    ) -> list[AddedPartitionsPlan | Refusal]:
        """An outcome for each topic, in the same order."""
        return await self._to_the_end(self._create_partitions(wanted, validate_only))

    async def delete_topics(self, to_delete: Sequence[TopicToDelete]) -> list[Deletion]:
        """An outcome for each topic that was named, in no particular order."""
        return await self._to_the_end(self._delete_topics(to_delete))

    async def alter_configs(
        self, changes: Sequence[ConfigChange], *, validate_only: bool = False
    ) -> list[Refusal | None]:
        """`None` for each change that was made, in the same order. No resource may occur twice."""
        return await self._to_the_end(self._alter_configs(changes, validate_only))

    async def update_features(
        self, updates: Sequence[FeatureUpdate], *, validate_only: bool = False
    ) -> Refusal | None:
        """`None` when all of them were made."""
        return await self._to_the_end(self._update_features(updates, validate_only))

    async def _to_the_end(self, work: Coroutine[None, None, T]) -> T:
        """Finish even if the caller goes away: the next decision needs an image that shows this one."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    async def _create_topics(
        self, wanted: Sequence[NewTopic], validate_only: bool
    ) -> list[TopicPlan | Refusal]:
        async with self._turn:
            term, image = self._office.term, self._follower.image
            if term is None:
                return [NOT_CONTROLLER] * len(wanted)
            outcomes = decide_creations(
                image, wanted, self._rules(), new_id=self._new_id, start=self._random_start
            )
            plans = [outcome for outcome in outcomes if isinstance(outcome, TopicPlan)]
            if not plans or validate_only:
                return outcomes
            failure = await self._write(
                term,
                (writes.creation(plan, image.brokers, term.epoch) for plan in plans),
                changed=[path for plan in plans for path in writes.paths_of(plan.name)],
            )
            return [failure if failure and isinstance(each, TopicPlan) else each for each in outcomes]

    async def _create_partitions(
        self, wanted: Sequence[AddedPartitions], validate_only: bool
    ) -> list[AddedPartitionsPlan | Refusal]:
        async with self._turn:
            term, image = self._office.term, self._follower.image
            if term is None:
                return [NOT_CONTROLLER] * len(wanted)
            outcomes = decide_added_partitions(image, wanted, start=self._random_start)
            plans = [outcome for outcome in outcomes if isinstance(outcome, AddedPartitionsPlan)]
            if not plans or validate_only:
                return outcomes
            failure = await self._write(
                term,
                (
                    writes.added_partitions(image.topics[plan.name], plan.added, image.brokers, term.epoch)
                    for plan in plans
                ),
                changed=[path for plan in plans for path in writes.paths_of(plan.name)],
            )
            return [
                failure if failure and isinstance(each, AddedPartitionsPlan) else each for each in outcomes
            ]

    async def _delete_topics(self, to_delete: Sequence[TopicToDelete]) -> list[Deletion]:
        async with self._turn:
            term, image = self._office.term, self._follower.image
            if term is None:
                return [Deletion(each.name, each.topic_id, NOT_CONTROLLER) for each in to_delete]
            deletions = decide_deletions(image, to_delete)
            topics = [
                image.topics[deletion.name]
                for deletion in deletions
                if deletion.refusal is None and deletion.name is not None
            ]
            if not topics:
                return deletions
            failure = await self._write(
                term,
                (writes.deletion(topic) for topic in topics),
                changed=[path for topic in topics for path in writes.paths_of(topic.name)],
            )
            return [each._replace(refusal=each.refusal or failure) for each in deletions]

    async def _alter_configs(
        self, changes: Sequence[ConfigChange], validate_only: bool
    ) -> list[Refusal | None]:
        async with self._turn:
            term, image = self._office.term, self._follower.image
            if term is None:
                return [NOT_CONTROLLER] * len(changes)
            decided = [(change.resource, change.decide(image)) for change in changes]
            operations: list[Operation] = []
            for resource, values in decided:
                if not isinstance(values, Refusal):
                    exists = await self._store.get(config_path(resource)) is not None
                    operations.append(writes.configuration(resource, values, exists=exists))
            failure = None
            if operations and not validate_only:
                failure = await self._write(
                    term, [operations], changed=[operation.path for operation in operations]
                )
            return [values if isinstance(values, Refusal) else failure for _, values in decided]

    async def _update_features(self, updates: Sequence[FeatureUpdate], validate_only: bool) -> Refusal | None:
        async with self._turn:
            term, image = self._office.term, self._follower.image
            if term is None:
                return NOT_CONTROLLER
            levels = decide_features(image.features, updates)
            if isinstance(levels, Refusal):
                return levels
            if validate_only or levels == image.features:
                return None
            data = payloads.encode_features(levels)
            exists = await self._store.get(layout.FEATURES) is not None
            change = Set(layout.FEATURES, data) if exists else Create(layout.FEATURES, data)
            return await self._write(term, [[change]], changed=[layout.FEATURES])

    def _random_start(self) -> int:
        return self._random.randrange(2**16)

    async def _write(
        self, term: Term, plans: Iterable[Sequence[Operation]], *, changed: Iterable[str]
    ) -> Refusal | None:
        """Carry out all of it, or say why none of it was written."""
        operations = [operation for plan in plans for operation in plan]
        try:
            await self._store.multi([term.check, *operations])
        except StoreWriteError as error:
            _logger.error("%s", error)
            return Refusal(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
        except BadVersionError:
            # Nothing but the term is checked for its version: another controller serves the next one.
            self._office.resign()
            return NOT_CONTROLLER
        await self._follower.refresh(changed)
        return None
