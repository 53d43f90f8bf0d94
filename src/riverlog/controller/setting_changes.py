"""Carries out what is decided about settings of resources, levels of features, and brokers to be forgotten.

Not here: the decisions.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from riverlog.controller import writes
from riverlog.controller.decisions.candidacy import Term
from riverlog.controller.decisions.features import FeatureUpdate, decide_features
from riverlog.controller.decisions.refusals import Refusal
from riverlog.controller.decisions.unregistration import decide_unregistration
from riverlog.controller.leader_changes import LeaderChanges
from riverlog.controller.term_writes import TermWrites
from riverlog.metadata import layout, payloads
from riverlog.metadata.config_nodes import config_path
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.image import NO_CONFIG, ClusterImage, ConfigResource, ResourceType
from riverlog.model.metadata_store import Create, Delete, MetadataStore, Operation, Set

_MIN_ISR: Final = "min.insync.replicas"


class ConfigChange(NamedTuple):
    """Settings to be replaced. `decide` is called with the image the write will be based on."""

    resource: ConfigResource
    decide: Callable[[ClusterImage], Mapping[str, str] | Refusal]


class SettingChanges:
    def __init__(
        self,
        store: MetadataStore,
        follower: MetadataFollower,
        term_writes: TermWrites,
        leaders: LeaderChanges,
    ) -> None:
        self._store = store
        self._follower = follower
        self._writes = term_writes
        self._leaders = leaders

    async def alter_configs(
        self, term: Term, changes: Sequence[ConfigChange], *, validate_only: bool
    ) -> list[Refusal | None]:
        image = self._follower.image
        decided = [(change.resource, change.decide(image)) for change in changes]
        operations: list[Operation] = []
        for resource, values in decided:
            if not isinstance(values, Refusal):
                exists = await self._store.get(config_path(resource)) is not None
                operations.append(writes.configuration(resource, values, exists=exists))
        failure = None
        if operations and not validate_only:
            failure = await self._leaders.end_eligibility(term, _topics_of_other_minimum(image, decided))
            failure = failure or await self._write(term, operations)
        return [values if isinstance(values, Refusal) else failure for _, values in decided]

    async def update_features(
        self, term: Term, updates: Sequence[FeatureUpdate], *, validate_only: bool
    ) -> Refusal | None:
        image = self._follower.image
        levels = decide_features(image.features, updates)
        if isinstance(levels, Refusal):
            return levels
        if validate_only or levels == image.features:
            return None
        data = payloads.encode_features(levels)
        exists = await self._store.get(layout.FEATURES) is not None
        return await self._write(term, [(Set if exists else Create)(layout.FEATURES, data)])

    async def unregister_broker(self, term: Term, node_id: int) -> Refusal | None:
        """A broker that registers meanwhile changes the version, and is not forgotten."""
        known = await self._store.get(layout.registration(node_id))
        is_alive = await self._store.get(layout.broker(node_id)) is not None
        refusal = decide_unregistration(
            self._follower.image, node_id, is_registered=known is not None, is_alive=is_alive
        )
        if refusal is not None or known is None:
            return refusal
        return await self._writes.write(term, [Delete(layout.registration(node_id), known.version)])

    async def _write(self, term: Term, operations: Sequence[Operation]) -> Refusal | None:
        failure = await self._writes.write(term, operations)
        if failure is None:
            await self._follower.refresh(operation.path for operation in operations)
        return failure


def _topics_of_other_minimum(
    image: ClusterImage, decided: Iterable[tuple[ConfigResource, Mapping[str, str] | Refusal]]
) -> Iterable[str]:
    """Topics for which `min.insync.replicas` may be another after the change."""
    found: set[str] = set()
    for resource, values in decided:
        before = image.configs.get(resource, NO_CONFIG)
        if isinstance(values, Refusal) or values.get(_MIN_ISR) == before.get(_MIN_ISR):
            continue
        if resource.type is ResourceType.TOPIC:
            found.add(resource.name)
        elif resource.type is ResourceType.BROKER:
            return image.topics
    return found
