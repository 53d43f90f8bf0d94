"""Asking the controller, wherever it is: handlers do not know whether it is this node or another.

`Controller` answers for itself. In a cluster a second one will send the request on; whatever keeps it from an
answer is a `Refusal` then, as any other.
"""

from collections.abc import Collection, Sequence
from typing import Protocol

from riverlog.controller.decisions.added_partitions import AddedPartitions, AddedPartitionsPlan
from riverlog.controller.decisions.deletion import Deletion, TopicToDelete
from riverlog.controller.decisions.elections import Election
from riverlog.controller.decisions.features import FeatureUpdate
from riverlog.controller.decisions.refusals import Refusal
from riverlog.controller.decisions.topics import NewTopic, TopicPlan
from riverlog.controller.leader_changes import Elected
from riverlog.controller.setting_changes import ConfigChange
from riverlog.model.ids import TopicPartition


class ControllerClient(Protocol):
    """Every list has one outcome for each thing that was wanted, in the same order."""

    async def create_topics(
        self, wanted: Sequence[NewTopic], *, validate_only: bool = False
    ) -> list[TopicPlan | Refusal]: ...

    async def create_partitions(
        self, wanted: Sequence[AddedPartitions], *, validate_only: bool = False
    ) -> list[AddedPartitionsPlan | Refusal]: ...

    async def delete_topics(self, to_delete: Sequence[TopicToDelete]) -> list[Deletion]: ...

    async def alter_configs(
        self, changes: Sequence[ConfigChange], *, validate_only: bool = False
    ) -> list[Refusal | None]: ...

    async def elect_leaders(self, kind: Election, wanted: Collection[TopicPartition] | None) -> Elected: ...

    async def unregister_broker(self, node_id: int) -> Refusal | None: ...

    async def update_features(
        self, updates: Sequence[FeatureUpdate], *, validate_only: bool = False
    ) -> Refusal | None: ...
