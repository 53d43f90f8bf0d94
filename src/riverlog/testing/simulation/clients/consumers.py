"""Consumers without a group: they read a topic's partitions from the beginning, and again.

What they are given is compared with the ledger, batch by batch (I2, I4); offsets go on where the last read
ended, so that a gap in what stands there is seen. One that reads committed records leaves out what the
broker says was aborted, and must be left with nothing but what was committed (I4, I14).
"""

from collections import deque
from dataclasses import dataclass
from typing import Any

from riverlog.model.errors import ErrorCode
from riverlog.records.batch import BatchHeader
from riverlog.testing.simulation.clients.process import SimulatedClient, Surroundings
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from riverlog.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

_EARLIEST = -2
_LATEST = -1
_VERSION = 11


@dataclass(frozen=True, slots=True)
class ConsumerPlan:
    topic: str
    partitions: int
    is_committed_only: bool = False
    max_bytes: int = 64 * 1024
    max_wait_ms: int = 300
    pause_s: float = 0.05
    again_chance: float = 0.05
    """How often it begins at the beginning again."""
    follower_chance: float = 0.3
    """How often it asks any replica instead of the leader, where there are several brokers."""
    latest_chance: float = 0.1
    """How often it asks where the partition ends."""


class Consumer(SimulatedClient):
    kind = "consume"

    def __init__(self, around: Surroundings, plan: ConsumerPlan) -> None:
        super().__init__(around)
        self.plan = plan
        self._positions: dict[int, int] = {}

    async def operate(self) -> None:
        await self.pause(self.plan.pause_s)
        index = self._chance.randrange(self.plan.partitions)
        if not await self.go_to_leader(self.plan.topic, index):
            return
        if self._chance.random() < self.plan.latest_chance:
            await self._find_latest(index)
        position = self._positions.get(index)
        if position is None or self._chance.random() < self.plan.again_chance:
            position = await self._find(index, _EARLIEST)
            if position is None:
                return
        if not self._routes.is_sole and self._chance.random() < self.plan.follower_chance:
            self._routes.go_to_replica(self.plan.topic, index)
        await self._fetch(index, position)

    async def _find_latest(self, index: int) -> None:
        """What was told before the question is not taken back by the same leader or one after it (I3).

        But by an unclean election: what a leader of an epoch before it goes on to tell is gone with it."""
        ledger = next(iter(self._ledger.named(self.plan.topic, index)), None)
        if ledger is None or len(self._ledger.named(self.plan.topic, index)) > 1:
            return
        before, cuts = ledger.told_ends.get(self.plan.is_committed_only), len(ledger.lost)
        answer = await self._list_offsets(index, _LATEST)
        if answer is None or len(ledger.lost) != cuts:
            return
        if answer.leader_epoch < ledger.unclean_epoch:
            return
        told = (answer.leader_epoch, answer.offset)
        # Its leader may tell where its log ends before the log is opened, which is when the ledger is cut.
        may_go_back = before is not None and before[0] < ledger.unclean_elected <= told[0]
        if before is not None and told[0] >= before[0] and told[1] < before[1] and not may_go_back:
            at = f"{self.plan.topic}-{index}"
            raise self.violated("I3", f"{at}: it ended at {before[1]}, and now at {told[1]}, {before} {told}")
        if before is None or told[0] >= before[0]:
            ledger.told_ends[self.plan.is_committed_only] = told
        self.done("found an end", at=f"{self.plan.topic}-{index}", offset=answer.offset)

    async def _find(self, index: int, what: int) -> int | None:
        answer = await self._list_offsets(index, what)
        if answer is None:
            await self.pause(0.1)
            return None
        self.done("found an offset", at=f"{self.plan.topic}-{index}", offset=answer.offset)
        return int(answer.offset)

    async def _list_offsets(self, index: int, what: int) -> Any | None:
        piece = ListOffsetsPartition(partition_index=index, timestamp=what)
        topic = ListOffsetsTopic(name=self.plan.topic, partitions=[piece])
        request = ListOffsetsRequest(
            replica_id=-1, isolation_level=int(self.plan.is_committed_only), topics=[topic]
        )
        reply = await self.ask(ApiKey.LIST_OFFSETS, 7, request)
        [answer] = reply.topics[0].partitions
        if answer.error_code:
            self.refused("list offsets", answer.error_code)
            return None
        return answer

    async def _fetch(self, index: int, position: int) -> None:
        plan = self.plan
        piece = FetchPartition(partition=index, fetch_offset=position, partition_max_bytes=plan.max_bytes)
        request = FetchRequest(
            max_wait_ms=plan.max_wait_ms,
            min_bytes=1,
            max_bytes=plan.max_bytes,
            isolation_level=int(plan.is_committed_only),
            topics=[FetchTopic(topic=plan.topic, partitions=[piece])],
        )
        reply = await self.ask(ApiKey.FETCH, _VERSION, request)
        if reply.error_code or not reply.responses:
            self.refused("fetch", reply.error_code)
            return
        [answer] = reply.responses[0].partitions
        if answer.error_code:
            self.refused("fetch", answer.error_code, at=f"{plan.topic}-{index}", offset=position)
            if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                self._positions.pop(index, None)
            await self.pause(0.1)
            return
        self._check_bounds(index, answer)
        data = memoryview(answer.records or b"")
        headers = self._ledger.check_read(plan.topic, index, data)
        self._check_continues(index, position, headers)
        if plan.is_committed_only:
            self._check_committed(index, headers, answer)
        self._positions[index] = headers[-1].next_offset if headers else position
        if self._routes.leader_of(plan.topic, index) not in (None, self._routes.present):
            self._counts["reads from followers"] += bool(headers)
        self.done("fetched", at=f"{plan.topic}-{index}", offset=position, batches=len(headers))

    def _check_bounds(self, index: int, answer: object) -> None:
        start, stable = answer.log_start_offset, answer.last_stable_offset  # type: ignore[attr-defined]
        watermark = answer.high_watermark  # type: ignore[attr-defined]
        if not start <= stable <= watermark:
            at = f"{self.plan.topic}-{index}"
            raise self.violated("I3", f"{at}: log start {start}, last stable {stable}, watermark {watermark}")

    def _check_continues(self, index: int, position: int, headers: list[BatchHeader]) -> None:
        """No batch between the position and what was given may be passed over, in one that is not cleaned."""
        ledgers = self._ledger.named(self.plan.topic, index)
        if not headers or len(ledgers) != 1 or ledgers[0].is_compacted:
            return
        ledger = ledgers[0]
        expected = max(position, ledger.start)
        for header in headers:
            if header.base_offset > max(expected, ledger.start) and ledger.at(expected) is not None:
                at = f"{self.plan.topic}-{index}"
                raise self.violated("I1", f"{at}: asked for {expected}, was given {header.base_offset}")
            expected = header.next_offset

    def _check_committed(self, index: int, headers: list[BatchHeader], answer: object) -> None:
        """Of what the broker does not say was aborted all must be committed."""
        told = answer.aborted_transactions or ()  # type: ignore[attr-defined]
        begun = deque(sorted((each.first_offset, each.producer_id) for each in told))
        aborted: set[int] = set()
        for header in headers:
            while begun and begun[0][0] <= header.last_offset:
                aborted.add(begun.popleft()[1])
            if header.is_control:
                aborted.discard(header.producer_id)
            elif header.is_transactional:
                self._check_fate(index, header, is_aborted=header.producer_id in aborted)

    def _check_fate(self, index: int, header: BatchHeader, *, is_aborted: bool) -> None:
        ledgers = self._ledger.named(self.plan.topic, index)
        fates = [each.fate_of(header) for each in ledgers]
        at = f"{self.plan.topic}-{index}: offset {header.base_offset}"
        was_committed = any(each.was_committed(header) for each in ledgers)
        if not is_aborted and True not in fates and not was_committed:
            raise self.violated("I4", f"{at} was given to a reader of committed records: {fates}")
        if is_aborted and fates == [True] and not ledgers[0].has_lost:
            raise self.violated("I14", f"{at} was committed, and is told to be aborted")
