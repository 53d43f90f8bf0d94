"""Three simulated brokers, and producers that write one transaction after the other, as clients do."""

import random
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, Final

from riverlog.client.core.retrying import Backoff
from riverlog.client.peer_connection import UnansweredError
from riverlog.client.peers import PeerLimits, Peers
from riverlog.coordinator.runtime.hashing import partition_for
from riverlog.metadata.image import ClusterImage
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId
from riverlog.model.internal_topics import TRANSACTIONS_TOPIC
from riverlog.model.network import Address
from riverlog.records.builder import build_batch
from riverlog.records.record import records_of
from riverlog.replication.partition import Partition
from riverlog.replication.roles import Leader
from riverlog.storage.log.log import Log
from riverlog.storage.producers.state import end_marker
from riverlog.testing.simulation.machine.lives import Life
from riverlog.testing.simulation.nodes import SimulatedNode
from riverlog.testing.simulation.world import World
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from riverlog.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from riverlog.wire.messages.end_txn import EndTxnRequest
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest
from riverlog.wire.messages.init_producer_id import InitProducerIdRequest
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from riverlog.wire.schema import Message
from tests.storage.logs import batches_of
from tests.virtual_time import elapse

SESSION_S: Final = 3.0
TOPIC: Final = "orders"
_SETTINGS: Final = {
    "transaction.state.log.num.partitions": 3,
    "offsets.topic.num.partitions": 3,
    "request.timeout.ms": 2_000,
}
_NONE: Final = ErrorCode.NONE


class Transactor:
    """One transaction after the other over all partitions, each third aborted. What it does not know to have
    come to an end it asks for again, as a client does; who was fenced begins anew."""

    def __init__(
        self,
        world: World,
        nodes: list[SimulatedNode],
        name: str,
        *,
        version: int = 2,
        timeout_ms: int = 60_000,
        is_two_phase: bool = False,
    ) -> None:
        """`version` is that of transactions: 1 adds partitions itself, 2 leaves it to the brokers."""
        self.name = name
        self.version = version
        self._timeout_ms, self._is_two_phase = timeout_ms, is_two_phase
        self.is_stopping = self.is_done = False
        self.committed: set[bytes] = set()
        self.maybe: set[bytes] = set()
        """Of transactions whose end it never learned."""
        self._nodes = nodes
        self._world = world
        self._number = 0
        self._me = (-1, -1)
        self._sequences: dict[int, int] = {}
        life = self._life = Life(name)
        self._network = world.wires.join(life, name)
        life.run(lambda: world.loop.create_task(self._run()))

    @property
    def image(self) -> ClusterImage:
        """As the broker sees it whose view is the newest."""
        seen = [each.node.image for each in self._nodes if each.node is not None and each.is_serving]
        return max(seen, key=_changes_in, default=ClusterImage())

    def connect(self) -> None:
        limits = PeerLimits(timeout_s=5, connect_timeout_s=2, backoff=Backoff(0.02, 0.2))
        chance = random.Random(f"{self._world.seed}/{self.name}").random
        address = {NodeId(each.node_id): Address(each.name, 9092) for each in self._nodes}
        self._peers = Peers(self._network, address.get, client_id=self.name, chance=chance, limits=limits)

    async def _run(self) -> None:
        self.connect()
        await self._init()
        while not self.is_stopping:
            await self._transact()
        self._peers.close()
        self.is_done = True

    async def _transact(self) -> None:
        self._number += 1
        value = b"%s-%d" % (self.name.encode(), self._number)
        commit = self._number % 3 != 0
        for partition in range(3):
            is_added = self.version == 2 or await self._add(partition)
            if not (is_added and await self._produce(partition, value)):
                await self._init()
                return
        error = await self._end(commit=commit)
        if error is _NONE:
            if commit:
                self.committed.add(value)
        else:
            self.maybe.add(value)
            await self._init()

    async def _init(self, *, keep_prepared: bool = False) -> None:
        """Ends whatever is open, unless that is to be kept."""
        request = InitProducerIdRequest(
            transactional_id=self.name,
            transaction_timeout_ms=self._timeout_ms,
            enable2_pc=self._is_two_phase,
            keep_prepared_txn=keep_prepared,
        )
        version = 6 if self._is_two_phase else 4
        while True:
            reply = await self._ask(self._coordinator, ApiKey.INIT_PRODUCER_ID, request, version)
            if reply is not None and reply.error_code == _NONE:
                self._me = (reply.producer_id, reply.producer_epoch)
                self._sequences.clear()
                return
            await elapse(0.05)

    async def _add(self, partition: int) -> bool:
        """Until it is part of the transaction; False when that can only be aborted."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self._me[0],
            v3_and_below_producer_epoch=self._me[1],
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=TOPIC, partitions=[partition])],
        )
        while True:
            reply = await self._ask(self._coordinator, ApiKey.ADD_PARTITIONS_TO_TXN, request, 3)
            if reply is not None:
                [result] = reply.results_by_topic_v3_and_below[0].results_by_partition
                error = ErrorCode(result.partition_error_code)
                if not (error.is_retriable or error is ErrorCode.CONCURRENT_TRANSACTIONS):
                    return error is _NONE
            await elapse(0.05)

    async def _produce(self, partition: int, value: bytes) -> bool:
        """Until it stands; False when the transaction can only be aborted."""
        sequence = self._sequences.get(partition, 0)
        batch = build_batch(
            [(0, None, value, ())],
            producer_id=self._me[0],
            producer_epoch=self._me[1],
            base_sequence=sequence,
            transactional=True,
        )
        data = [PartitionProduceData(index=partition, records=batch)]
        request = ProduceRequest(
            transactional_id=self.name,
            acks=-1,
            timeout_ms=5_000,
            topic_data=[TopicProduceData(name=TOPIC, partition_data=data)],
        )
        for _ in range(200):
            version = 10 + self.version
            reply = await self._ask(lambda: self._leader(partition), ApiKey.PRODUCE, request, version)
            if reply is not None:
                error = ErrorCode(reply.responses[0].partition_responses[0].error_code)
                if error is _NONE:
                    self._sequences[partition] = sequence + 1
                    return True
                if not (error.is_retriable or error is ErrorCode.CONCURRENT_TRANSACTIONS):
                    return False
            await elapse(0.05)
        return False

    async def _end(self, *, commit: bool) -> ErrorCode:
        request = EndTxnRequest(
            transactional_id=self.name, producer_id=self._me[0], producer_epoch=self._me[1], committed=commit
        )
        while True:
            reply = await self._ask(self._coordinator, ApiKey.END_TXN, request, 3 + self.version)
            if reply is not None:
                error = ErrorCode(reply.error_code)
                if error is _NONE and self.version == 2:
                    self._me = (reply.producer_id, reply.producer_epoch)
                    self._sequences.clear()
                if not (error.is_retriable or error is ErrorCode.CONCURRENT_TRANSACTIONS):
                    return error
            await elapse(0.05)

    def _coordinator(self) -> NodeId | None:
        topic = self.image.topics.get(TRANSACTIONS_TOPIC)
        return None if topic is None else topic.partitions[partition_for(self.name, 3)].leader

    def _leader(self, partition: int) -> NodeId | None:
        found = self.image.partition(TOPIC, partition)
        return None if found is None else found.leader

    async def _ask(
        self, whom: Callable[[], NodeId | None], key: ApiKey, request: Message, version: int
    ) -> Any | None:
        node_id = whom()
        if node_id is None:
            return None
        try:
            return await self._peers.ask(node_id, key, request, version_max=version)
        except UnansweredError:
            return None


def _changes_in(image: ClusterImage) -> int:
    """How often a partition has got another state."""
    return sum(each.partition_epoch for topic in image.topics.values() for each in topic.partitions)


class ClusterWorld:
    def __init__(self, world: World, replicas: int = 1, *, of_orders: int | None = None) -> None:
        """`replicas` are those of internal topics, and of the others unless it is said how many."""
        self.world = world
        self._replicas = replicas if of_orders is None else of_orders
        settings = {
            **_SETTINGS,
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": 2 if replicas == 3 else 1,
        }
        self.shared = world.add_ensemble(SESSION_S)
        self.nodes = [
            world.add_node(f"n{at}", settings, node_id=at, ensemble=self.shared) for at in (1, 2, 3)
        ]
        for node in self.nodes:
            if replicas > 1:
                # The observer takes each log for the only copy of its records.
                world.observers.pop(node.name)
                node.on_recovered = node.on_stopped = lambda *_: None
                node.on_starting = node.on_ending = lambda _: None
            node.start()
            self.until(lambda node=node: node.is_serving, 30)  # type: ignore[misc]
        self.until(lambda: all(len(each.node.image.brokers) == 3 for each in self.nodes if each.node), 30)
        self._make_topics()

    def until(self, condition: Callable[[], bool], within_s: float) -> None:
        assert self.world.run_until(condition, within_s=within_s)

    def _make_topics(self) -> None:
        life = Life("admin")
        network = self.world.wires.join(life, "admin")
        assignments = [
            CreatableReplicaAssignment(
                partition_index=at, broker_ids=[1 + (at + more) % 3 for more in range(self._replicas)]
            )
            for at in range(3)
        ]
        topic = CreatableTopic(name=TOPIC, num_partitions=-1, replication_factor=-1, assignments=assignments)

        async def make() -> None:
            node = self.nodes[0].node
            assert node is not None
            assert node.image.controller_id is not None
            at = Address(f"n{node.image.controller_id}", 9092)
            peers = Peers(network, lambda _: at, client_id="admin", chance=lambda: 0.5)
            await peers.ask(
                NodeId(0), ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=[topic], timeout_ms=9_000)
            )
            find = FindCoordinatorRequest(coordinator_keys=["x"], key_type=1)
            await peers.ask(NodeId(0), ApiKey.FIND_COORDINATOR, find)
            peers.close()

        self.run_in(life, make())
        self.until(self.all_led, 30)

    def run_in(self, life: Life, work: Coroutine[Any, Any, None]) -> None:
        task = life.run(lambda: self.world.loop.create_task(work))
        self.until(task.done, 30)
        task.result()

    def all_led(self) -> bool:
        return all(
            each.node is not None
            and each.is_serving
            and each.node.image.topics.keys() >= {TOPIC, TRANSACTIONS_TOPIC}
            and all(
                partition.leader is not None
                for topic in each.node.image.topics.values()
                for partition in topic.partitions
            )
            for each in self.nodes
        )

    def partition(self, at: int) -> Partition:
        """At the broker that leads it; all of them must be led."""
        for each in self.nodes:
            if each.node is not None:
                found = each.node.replicas.find(TOPIC, at)
                if isinstance(found, Partition) and isinstance(found.role, Leader):
                    return found
        raise AssertionError(f"nobody leads {TOPIC}-{at}")

    def nothing_is_open(self) -> bool:
        return not any(self.partition(at).log.producers.open_transactions() for at in range(3))


def markers_of(log: Log) -> list[bool]:
    """Whether each end of a transaction is a commit."""
    found = (end_marker(header, data, position) for data, position, header in batches_of(log))
    return [not marker.is_abort for marker in found if marker is not None]


def committed_in(log: Log) -> Counter[bytes]:
    """The values of committed transactions, with how often each stands there."""
    committed: Counter[bytes] = Counter()
    pending: dict[int, list[bytes]] = {}
    for data, position, header in batches_of(log):
        marker = end_marker(header, data, position)
        if marker is None:
            values = [record.value or b"" for record in records_of(data, position)]
            pending.setdefault(header.producer_id, []).extend(values)
        elif not marker.is_abort:
            committed.update(pending.pop(header.producer_id, ()))
        else:
            pending.pop(header.producer_id, None)
    assert not pending, "a transaction is open"
    return committed
