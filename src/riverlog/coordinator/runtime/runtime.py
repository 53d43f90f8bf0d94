"""The runtime of a coordinator: one shard for each partition of its internal topic that this node leads.

Loads a shard when this node comes to lead its partition, and at the latest when it is asked for; answers
COORDINATOR_LOAD_IN_PROGRESS meanwhile and NOT_COORDINATOR for what it does not lead; lets go of a shard with
the leadership, with a new leader epoch, or with the topic. Not here: what a shard decides, and the making of
the internal topic.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Final, Generic, NamedTuple, TypeVar

from riverlog.coordinator.runtime.effects import Effects, Order, TimerKey, Token
from riverlog.coordinator.runtime.hashing import partition_for
from riverlog.coordinator.runtime.loading import PIECE_BYTES, Loading
from riverlog.coordinator.runtime.shard import Shard
from riverlog.coordinator.runtime.shard_runtime import OrderFrom, ShardAnswer, ShardLimits, ShardRuntime
from riverlog.coordinator.runtime.timers import Timers
from riverlog.metadata.delta import ImageDelta
from riverlog.model.clock import Clock
from riverlog.model.disk import FileSlice
from riverlog.model.errors import ErrorCode, RiverlogError
from riverlog.model.ids import ProducerIdAndEpoch
from riverlog.records.batch import CorruptBatch
from riverlog.replication.partition import Partition
from riverlog.replication.replica_set import ReplicaSet
from riverlog.replication.roles import Leader

S = TypeVar("S", bound=Shard)
R = TypeVar("R")

READ_AT_ONCE_BYTES: Final = PIECE_BYTES
"""A log up to this size is replayed within the first request; a longer one in the background."""

_logger = logging.getLogger(__name__)


def _refuse_order(origin: OrderFrom, order: Order) -> None:
    raise AssertionError(f"there is no one to take the order {order!r}")


class _Load(NamedTuple, Generic[S]):
    hosted: ShardRuntime[S]
    task: "asyncio.Task[None]"


class CoordinatorRuntime(Generic[S]):
    def __init__(
        self,
        topic: str,
        replicas: ReplicaSet,
        new_shard: Callable[[], S],
        *,
        clock: Clock,
        read: Callable[[FileSlice], Awaitable[bytes]],
        rules: ShardLimits = ShardLimits(),  # noqa: B008 - a frozen value
        take_order: Callable[[OrderFrom, Order], None] = _refuse_order,
    ) -> None:
        self.topic = topic
        self._replicas = replicas
        self._new_shard = new_shard
        self._clock = clock
        self._read = read
        self._rules = rules
        self._take_order = take_order
        self._timers = Timers(clock)
        self._partitions = 0
        self.leads_all = False
        """Whether every partition of the topic is this node's."""
        self._hosted: dict[int, ShardRuntime[S]] = {}
        self._loading: dict[int, _Load[S]] = {}
        self._after_load: dict[int, list[Callable[[S, int], Effects]]] = {}
        self._taking_over: set[asyncio.Task[None]] = set()
        self._has_started = False

    @property
    def partition_count(self) -> int:
        """0 while the internal topic does not exist."""
        return self._partitions

    def partition_for(self, key: str) -> int:
        """Where a group or transactional id belongs; the topic must exist."""
        return partition_for(key, self._partitions) if self._partitions else 0

    def leads(self, origin: OrderFrom) -> bool:
        """Whether the shard that gave an order is the one that serves still."""
        hosted = self._hosted.get(origin.index)
        return hosted is not None and hosted.is_leader and hosted.leader_epoch == origin.leader_epoch

    def run(self, index: int, decide: Callable[[S, Token[R], int], Effects]) -> ShardAnswer[R]:
        """Take a decision for a request: the future of its reply, or of the error.

        `decide` gets the shard, a token for the request and the wall time. Whichever decision puts a reply to
        the token among its effects, this one or a later one, answers the request.
        """
        hosted = self._find(index)
        return _answered(hosted) if isinstance(hosted, ErrorCode) else hosted.run(decide)

    def ask(self, index: int, query: Callable[[S], R]) -> ShardAnswer[R]:
        """Look something up; the answer waits until what it rests on is committed."""
        hosted = self._find(index)
        return _answered(hosted) if isinstance(hosted, ErrorCode) else hosted.ask(query)

    def write_marker(
        self, index: int, producer: ProducerIdAndEpoch, coordinator_epoch: int, *, commit: bool
    ) -> ShardAnswer[None]:
        """End a producer's transaction in a partition of the internal topic. None: the marker is there."""
        hosted = self._find(index)
        if isinstance(hosted, ErrorCode):
            return _answered(hosted)
        return hosted.write_marker(producer, coordinator_epoch, commit=commit)

    def for_each(self, decide: Callable[[S, int], Effects]) -> None:
        """A decision in every shard that is loaded, or once it is; the caller does not wait for it."""
        for hosted in tuple(self._hosted.values()):
            if hosted.is_leader:
                hosted.decide(decide)
        for index in self._loading:
            self._after_load.setdefault(index, []).append(decide)

    async def ring_until_done(self, key: TimerKey) -> None:
        """Let a timer that every shard has go off now, until none has more to do for it."""
        for hosted in tuple(self._hosted.values()):
            has_more = True
            while has_more and hosted.is_leader:
                has_more = hosted.ring(key)
                await hosted.when_committed()

    def ask_each(self, query: Callable[[S], R]) -> list[ShardAnswer[R]]:
        """Look something up in each shard that this node leads and that may hold anything, loaded or not."""
        answers = []
        for index in self._with_a_log():
            answer = self.ask(index, query)
            if not (answer.done() and answer.result() is ErrorCode.NOT_COORDINATOR):
                answers.append(answer)
        return answers

    def every_shard(self) -> list[S] | None:
        """All shards of the topic; None when this node does not lead each of them, or has not loaded it."""
        found = [self._find(index) for index in range(self._partitions)]
        hosted = [each for each in found if not isinstance(each, ErrorCode)]
        return [each.shard for each in hosted] if len(hosted) == len(found) else None

    def _with_a_log(self) -> list[int]:
        """Partitions that were never used are neither opened nor made by looking."""
        return [index for index in range(self._partitions) if self._replicas.has_log(self.topic, index)]

    def apply(self, delta: ImageDelta) -> None:
        """Follow the cluster image; call after the replicas have taken it over."""
        if self.topic in delta.deleted:
            for index in list(self._hosted):
                self._let_go(index)
            for index in list(self._loading):
                self._give_up_load(index)
        topic = delta.new.topics.get(self.topic)
        self._partitions = 0 if topic is None else len(topic.partitions)
        node_id = self._replicas.node_id
        self.leads_all = topic is None or all(each.leader == node_id for each in topic.partitions)
        for index in [index for index, hosted in self._hosted.items() if not hosted.is_leader]:
            self._let_go(index)
        for index in [index for index, load in self._loading.items() if not load.hosted.is_leader]:
            self._give_up_load(index)
        if self._has_started and (gained := self._gained(delta)):
            task = asyncio.create_task(self._load_each(gained), name=f"take over {self.topic}")
            self._taking_over.add(task)
            task.add_done_callback(self._taking_over.discard)

    def _gained(self, delta: ImageDelta) -> list[int]:
        """The partitions that this node leads since this image, or under another epoch than before; all that
        it leads when it is registered since, which it has to be to lead what it was elected for."""
        node_id = self._replicas.node_id
        topic = delta.created.get(self.topic)
        if delta.old.brokers.get(node_id) != delta.new.brokers.get(node_id):
            topic = delta.new.topics.get(self.topic)
        if topic is not None:
            return [index for index, image in enumerate(topic.partitions) if image.leader == node_id]
        return [
            index
            for index, before, after in delta.partitions.get(self.topic, ())
            if after.leader == node_id and (before is None or before.leader_epoch != after.leader_epoch)
        ]

    async def load_all(self) -> None:
        """Load every shard that this node leads, and from now on each that it comes to lead, so that their
        timers run and what a crash left half done is taken up without a request."""
        self._has_started = True
        await self._load_each(range(self._partitions))

    async def _load_each(self, indexes: Iterable[int]) -> None:
        """One in each turn of the event loop. Partitions that were never used are not opened by this."""
        for index in indexes:
            if not self._replicas.has_log(self.topic, index):
                continue
            if self._find(index) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                await asyncio.wait([self._loading[index].task])
            await asyncio.sleep(0)

    async def close(self) -> None:
        tasks = [*self._taking_over, *(load.task for load in self._loading.values())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for index in list(self._hosted):
            self._let_go(index)
        self._timers.close()

    def _find(self, index: int) -> ShardRuntime[S] | ErrorCode:
        hosted = self._hosted.get(index)
        if hosted is not None:
            if hosted.is_leader:
                return hosted
            self._let_go(index)
        if index in self._loading:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        if not 0 <= index < self._partitions:
            return ErrorCode.NOT_COORDINATOR
        partition = self._replicas.find(self.topic, index)
        if isinstance(partition, ErrorCode) or not isinstance(partition.role, Leader):
            return ErrorCode.NOT_COORDINATOR
        return self._load(index, partition)

    def _load(self, index: int, partition: Partition) -> ShardRuntime[S] | ErrorCode:
        shard = self._new_shard()
        loading = Loading(partition.log, shard, self._rules.load_bytes)
        hosted = ShardRuntime(
            index, partition, shard, self._timers, self._clock, self._rules, self._take_order
        )
        if loading.bytes_left > min(READ_AT_ONCE_BYTES, self._rules.load_bytes):
            task = asyncio.create_task(self._load_slowly(hosted, loading), name=f"load {self.topic}-{index}")
            self._loading[index] = _Load(hosted, task)
            task.add_done_callback(partial(self._on_load_ended, index))
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        try:
            while (piece := loading.next_piece()) is not None:
                loading.replay(piece.file.pread(piece.length, piece.position))
        except (RiverlogError, CorruptBatch) as error:
            _logger.error("%s-%d cannot be loaded: %s", self.topic, index, error)
            return ErrorCode.NOT_COORDINATOR
        self._host(hosted)
        return hosted

    async def _load_slowly(self, hosted: ShardRuntime[S], loading: Loading) -> None:
        while (piece := loading.next_piece()) is not None:
            loading.replay(await self._read(piece))
        if hosted.is_leader:
            self._host(hosted)

    def _host(self, hosted: ShardRuntime[S]) -> None:
        self._hosted[hosted.index] = hosted
        hosted.begin()
        for decide in self._after_load.pop(hosted.index, ()):
            hosted.decide(decide)

    def _on_load_ended(self, index: int, task: "asyncio.Task[None]") -> None:
        load = self._loading.get(index)
        if load is not None and load.task is task:
            del self._loading[index]
            self._after_load.pop(index, None)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            _logger.error("%s-%d cannot be loaded: %s", self.topic, index, error, exc_info=error)

    def _give_up_load(self, index: int) -> None:
        """The shard of another epoch is loaded anew."""
        self._loading.pop(index).task.cancel()
        self._after_load.pop(index, None)

    def _let_go(self, index: int) -> None:
        self._hosted.pop(index).close()


def _answered(error: ErrorCode) -> "ShardAnswer[R]":
    answer: ShardAnswer[R] = asyncio.get_running_loop().create_future()
    answer.set_result(error)
    return answer
