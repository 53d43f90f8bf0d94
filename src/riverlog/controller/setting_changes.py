"""Carries out what is decided about settings of resources, levels of features, and brokers to be forgotten.

Not here: the decisions.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from riverlog.controller import writes
from riverlog.controller.candidacy import Term
from riverlog.controller.decisions import Refusal
from riverlog.controller.features import FeatureUpdate, decide_features
from riverlog.controller.term_writes import TermWrites
from riverlog.controller.unregistration import decide_unregistration
from riverlog.metadata import layout, payloads
from riverlog.metadata.config_nodes import config_path
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.image import ClusterImage, ConfigResource
from riverlog.model.metadata_store import Create, Delete, MetadataStore, Operation, Set


class ConfigChange(NamedTuple):
    """Settings to be replaced. `decide` is called with the image the write will be based on."""

    resource: ConfigResource
    decide: Callable[[ClusterImage], Mapping[str, str] | Refusal]


class SettingChanges:
    def __init__(self, store: MetadataStore, follower: MetadataFollower, term_writes: TermWrites) -> None:
        self._store = store
        self._follower = follower
        self._writes = term_writes

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
            failure = await self._write(term, operations)
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
        registered = {int(name) for name in await self._store.children(layout.REGISTRATIONS)}
        refusal = decide_unregistration(self._follower.image, registered, node_id)
        return refusal or await self._writes.write(term, [Delete(layout.registration(node_id))])

    async def _write(self, term: Term, operations: Sequence[Operation]) -> Refusal | None:
        failure = await self._writes.write(term, operations)
        if failure is None:
            await self._follower.refresh(operation.path for operation in operations)
        return failure
