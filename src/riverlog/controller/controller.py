"""Carries out decisions about the cluster: one at a time, each as one transaction of the metadata store.

Every write checks the controller's epoch, so that one which has been replaced changes nothing. A call returns
when the local image shows its outcome. Not here: the decisions themselves.
"""

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from uuid import UUID

from riverlog.controller.topics import NewTopic, Refusal, TopicDefaults, TopicPlan, decide_create
from riverlog.metadata import layout, payloads
from riverlog.metadata.follower import MetadataFollower
from riverlog.model.ids import NodeId
from riverlog.model.metadata_store import Check, Create, MetadataStore, Operation, Set

CreateOutcome = TopicPlan | Refusal


class Controller:
    def __init__(
        self,
        store: MetadataStore,
        follower: MetadataFollower,
        node_id: NodeId,
        *,
        defaults: Callable[[], TopicDefaults],
        new_id: Callable[[], UUID],
        random: Random,
        wall_ms: Callable[[], int],
    ) -> None:
        self._store = store
        self._follower = follower
        self._node_id = node_id
        self._defaults = defaults
        self._new_id = new_id
        self._random = random
        self._wall_ms = wall_ms
        self._turn = asyncio.Lock()
        self._epoch = 0
        self._epoch_version = 0

    async def start(self) -> None:
        """Become the controller, under an epoch of its own."""
        node = await self._store.get(layout.CONTROLLER_EPOCH)
        claim = Create(
            layout.CONTROLLER, payloads.encode_controller(self._node_id, self._wall_ms()), ephemeral=True
        )
        if node is None:
            self._epoch, self._epoch_version = 1, 0
            raise_epoch: Operation = Create(layout.CONTROLLER_EPOCH, b"1")
        else:
            self._epoch, self._epoch_version = int(node.data) + 1, node.version + 1
            raise_epoch = Set(layout.CONTROLLER_EPOCH, str(self._epoch).encode(), node.version)
        await self._store.multi([raise_epoch, claim])
        await self._follower.refresh([layout.CONTROLLER])

    async def create_topics(
        self, wanted: Sequence[NewTopic], *, validate_only: bool = False
    ) -> list[CreateOutcome]:
        """An outcome for each topic, in the same order."""
        async with self._turn:
            outcomes = [self._decide_create(topic) for topic in wanted]
            plans = [outcome for outcome in outcomes if isinstance(outcome, TopicPlan)]
            if plans and not validate_only:
                await self._write([operation for plan in plans for operation in self._creation(plan)])
            return outcomes

    def _decide_create(self, wanted: NewTopic) -> CreateOutcome:
        start = self._random.randrange(2**16)
        return decide_create(
            self._follower.image, wanted, self._defaults(), topic_id=self._new_id(), start=start
        )

    def _creation(self, plan: TopicPlan) -> list[Operation]:
        topic = payloads.TopicNode(plan.topic_id, plan.replicas)
        operations: list[Operation] = [
            Create(f"{layout.TOPIC_CONFIGS}/{plan.name}", payloads.encode_config(plan.configs)),
            Create(layout.topic(plan.name), payloads.encode_topic(topic)),
            Create(layout.partitions(plan.name)),
        ]
        operations += self._partition_creation(plan.name, 0, plan.replicas)
        return operations

    def _partition_creation(
        self, topic: str, first: int, replicas: Sequence[tuple[NodeId, ...]]
    ) -> list[Operation]:
        alive = self._follower.image.brokers
        states: dict[tuple[NodeId, ...], bytes] = {}
        operations: list[Operation] = []
        for index, assigned in enumerate(replicas, first):
            state = states.get(assigned)
            if state is None:
                isr = tuple(node_id for node_id in assigned if node_id in alive)
                node = payloads.PartitionNode(isr[0] if isr else None, 0, isr, self._epoch)
                state = states[assigned] = payloads.encode_partition(node)
            path = layout.partition(topic, index)
            operations.append(Create(path))
            operations.append(Create(f"{path}/state", state))
        return operations

    async def _write(self, operations: Sequence[Operation]) -> None:
        fenced: list[Operation] = [Check(layout.CONTROLLER_EPOCH, self._epoch_version)]
        await self._store.multi(fenced + list(operations))
        await self._follower.refresh()
