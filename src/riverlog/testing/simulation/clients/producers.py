"""Producers: with any acks, with or without sequences.

A batch that has no answer is sent again by an idempotent producer until it has one, as often as it takes; a
plain one leaves it. Up to five requests are on the way at once (I5, I6).
"""

import asyncio
from dataclasses import dataclass

from riverlog.model.errors import ErrorCode
from riverlog.records.batch import read_header
from riverlog.records.builder import NewRecord, build_batch
from riverlog.records.compression import Codec
from riverlog.testing.simulation.clients.connection import ClientConnection, Disconnected
from riverlog.testing.simulation.clients.process import SimulatedClient, Surroundings
from riverlog.testing.simulation.machine.clocks import START_MS
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.init_producer_id import InitProducerIdRequest
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

TRY_AGAIN = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    }
)
_BEGIN_ANEW = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
    }
)


@dataclass(frozen=True, slots=True)
class ProducerPlan:
    topic: str
    partitions: int
    acks: int = -1
    is_idempotent: bool = True
    codec: Codec = Codec.NONE
    keys: int = 0
    """How many different keys; 0 for none."""
    records_max: int = 5
    value_bytes: int = 60
    is_even: bool = False
    """Values are of exactly so many bytes each."""
    in_flight_max: int = 5
    version: int = 9
    pause_s: float = 0.05


@dataclass(slots=True, eq=False)
class Sending:
    partition: int
    data: bytes
    crc: int
    is_sent_again: bool = False
    stood_at: int | None = None
    """Where it was committed when it was sent again."""


class Producer(SimulatedClient):
    kind = "produce"

    def __init__(self, around: Surroundings, plan: ProducerPlan) -> None:
        super().__init__(around)
        self.plan = plan
        self._producer: tuple[int, int] | None = None
        self._sequences: dict[int, int] = {}
        self._unanswered: list[Sending] = []
        self._count = 0

    async def operate(self) -> None:
        plan = self.plan
        if plan.is_idempotent and self._producer is None and not await self._init():
            return
        if plan.acks == 0:
            await self._send_unanswered()
        else:
            await self._send_round()
        await self.pause(plan.pause_s)

    async def _init(self) -> bool:
        reply = await self.ask(
            ApiKey.INIT_PRODUCER_ID,
            4,
            InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000),
        )
        if reply.error_code:
            self.refused("init", reply.error_code)
            self._routes.go_anywhere()  # Any broker gives ids; one without the store has none left.
            await self.pause(0.2)
            return False
        self._producer = (reply.producer_id, reply.producer_epoch)
        self._sequences.clear()
        self.done("has an id", id=reply.producer_id)
        return True

    def new_batch(self, partition: int, *, transactional: bool = False) -> Sending:
        plan, chance = self.plan, self._chance
        records: list[NewRecord] = []
        for _ in range(chance.randint(1, plan.records_max)):
            self._count += 1
            key = f"k{chance.randrange(plan.keys)}".encode() if plan.keys else None
            value = f"{self.name}:{self._count}:".encode()
            if key is not None and chance.random() < 0.1:
                records.append((START_MS, key, None, ()))
            else:
                records.append((START_MS, key, self._filled_up(value), ()))
        producer_id, epoch = self._producer or (-1, -1)
        sequence = self._sequences.get(partition, 0) if self._producer else -1
        data = build_batch(
            records,
            codec=plan.codec,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=transactional,
        )
        if self._producer:
            self._sequences[partition] = sequence + len(records)
        return Sending(partition, data, read_header(data).crc)

    def _filled_up(self, value: bytes) -> bytes:
        plan = self.plan
        if plan.is_even:
            return value.ljust(plan.value_bytes, b"x")
        return value + b"x" * self._chance.randint(0, plan.value_bytes)

    def request(self, sending: Sending, transactional_id: str | None = None) -> ProduceRequest:
        piece = PartitionProduceData(index=sending.partition, records=sending.data)
        topic = TopicProduceData(name=self.plan.topic, partition_data=[piece])
        return ProduceRequest(
            transactional_id=transactional_id, acks=self.plan.acks, timeout_ms=3000, topic_data=[topic]
        )

    async def _send_unanswered(self) -> None:
        connection = await self._connected_with_a_leader()
        if connection is None:
            return
        index = self._chance.randrange(self.plan.partitions)
        if self._is_led_here(index):
            sending = self.new_batch(index)
            connection.send_unanswered(ApiKey.PRODUCE, self.plan.version, self.request(sending))
            self.done("sent without acks")

    async def _send_round(self) -> None:
        """Some requests at once, on one connection; those without an answer first."""
        connection = await self._connected_with_a_leader()
        if connection is None:
            return
        before, self._unanswered = self._unanswered, []
        again = [each for each in before if self._is_led_here(each.partition)]
        others = [each for each in before if each not in again]
        waiting = {each.partition for each in others}
        fresh: list[Sending] = []
        for _ in range(self._chance.randint(1, self.plan.in_flight_max) - len(again)):
            index = self._chance.randrange(self.plan.partitions)
            if index not in waiting and self._is_led_here(index):
                fresh.append(self.new_batch(index))
        await self._send(connection, again + fresh, others)

    async def _connected_with_a_leader(self) -> ClientConnection | None:
        """Of a partition of which a batch waits, or of any; None when it has none."""
        if not self._routes.is_sole:
            indexes = [each.partition for each in self._unanswered] or range(self.plan.partitions)
            if not await self.go_to_leader(self.plan.topic, self._chance.choice(indexes)):
                return None
        return await self.connected()

    def _is_led_here(self, index: int) -> bool:
        return self._routes.leader_of(self.plan.topic, index) == self._routes.present

    async def _send(
        self, connection: ClientConnection, sendings: list[Sending], others: list[Sending]
    ) -> None:
        """`others` wait for another broker."""
        answers = [
            connection.send(ApiKey.PRODUCE, self.plan.version, self.request(each)) for each in sendings
        ]
        done, _ = await asyncio.wait(answers, timeout=self.request_timeout_s) if answers else (set(), None)
        failed: list[Sending] = []
        for sending, answer in zip(sendings, answers, strict=True):
            if (
                answer not in done
                or answer.exception() is not None
                or self._is_left(sending, answer.result(), bool(failed))
            ):
                failed.append(sending)
        if len(done) < len(answers):
            connection.close("no reply in time")
        if self.plan.is_idempotent and self._producer is not None:
            for each in failed:
                each.is_sent_again = True
                each.stood_at = self._ledger.find(self.plan.topic, each.partition, each.crc)
            self._unanswered = others + failed
        if failed and connection.is_closed:
            raise Disconnected("during a produce")

    def check_acknowledged(self, sending: Sending, offset: int) -> None:
        """What all replicas have is committed; what one has may not be yet."""
        told = (self.plan.topic, sending.partition, offset, sending.crc)
        if self.plan.acks == 1 and self._ledger.is_replicated:
            self._ledger.check_written(*told)
        else:
            self._ledger.check_acknowledged(*told)

    def _is_left(self, sending: Sending, reply: object, follows_failure: bool) -> bool:
        """Whether the batch is to be sent again."""
        [topic] = reply.responses  # type: ignore[attr-defined]
        [answer] = topic.partition_responses
        code = answer.error_code
        at = f"{self.plan.topic}-{sending.partition}"
        if not code:
            self.check_acknowledged(sending, answer.base_offset)
            self.done("acknowledged", at=at, offset=answer.base_offset, again=sending.is_sent_again)
            if sending.is_sent_again:
                self._counts["produce acknowledged again"] += 1
                self._counts["produce of a duplicate"] += sending.stood_at == answer.base_offset
            return False
        if code == ErrorCode.UNKNOWN_SERVER_ERROR:
            raise self.violated("I6", "a produce was answered with UNKNOWN_SERVER_ERROR")
        self.refused("produce", code, at=at)
        if code == ErrorCode.REQUEST_TIMED_OUT:
            # A client asks for leaders again by the age of what it knows; one that is cut off tells no other.
            self._routes.go_anywhere()
        if code in _BEGIN_ANEW:
            if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and follows_failure:
                return True
            self._producer = None
            self._unanswered.clear()
            return False
        return code in TRY_AGAIN
