"""The runtime: decisions become records and replies in order, and a shard is what its log says."""

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace

import pytest

from riverlog.coordinator.runtime import runtime as runtimes
from riverlog.coordinator.runtime.effects import (
    NOTHING,
    CancelTimer,
    CoordinatorRecord,
    Effects,
    Reply,
    SetTimer,
    Token,
    reply,
)
from riverlog.coordinator.runtime.runtime import CoordinatorRuntime
from riverlog.coordinator.runtime.shard_runtime import OrderFrom, ShardLimits
from riverlog.metadata.image import BrokerImage
from riverlog.model.config.slices import LogConfig
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import BrokerEpoch, LeaderEpoch, NodeId, ProducerIdAndEpoch
from riverlog.replication.leading.follower_states import FollowerFetch
from riverlog.replication.partition import Partition
from riverlog.replication.roles import Follower, Leader, Offline
from tests.coordinator.hosting import NODE, Cluster, HeldExecutor, Logs, image, read_now
from tests.virtual_time import LoopClock as Clock
from tests.virtual_time import elapse, run_virtually
from tests.waiting import loop_turns

TOPIC = "__words"


@dataclass
class Words:
    """A shard that remembers words; those of a transaction only when it commits."""

    known: dict[str, str] = field(default_factory=dict)
    pending: dict[int, dict[str, str]] = field(default_factory=dict)
    waiting: list[Token[str]] = field(default_factory=list)
    rung: list[tuple[Hashable, int]] = field(default_factory=list)
    on_ring: Effects = NOTHING
    followed: list[tuple[Hashable, ErrorCode | None]] = field(default_factory=list)

    def replay(
        self,
        key: bytes,
        value: bytes | None,
        *,
        offset: int,
        timestamp_ms: int,
        producer: ProducerIdAndEpoch | None,
    ) -> None:
        if producer is not None and value is not None:
            self.pending.setdefault(producer.producer_id, {})[key.decode()] = value.decode()
        elif value is None:
            self.known.pop(key.decode(), None)
        else:
            self.known[key.decode()] = value.decode()

    def replay_end_marker(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
        ended = self.pending.pop(producer.producer_id, {})
        if committed:
            self.known |= ended

    def on_loaded(self, now_ms: int, *, may_have_lost: bool) -> Effects:
        return Effects(timers=(SetTimer("loaded", 10),))

    def on_committed(self, follow_up: Hashable, error: ErrorCode | None, now_ms: int) -> Effects:
        self.followed.append((follow_up, error))
        return NOTHING

    def on_timer(self, key: Hashable, now_ms: int) -> Effects:
        self.rung.append((key, now_ms))
        return self.on_ring


Runtime = CoordinatorRuntime[Words]


def word(key: str, value: str | None = "x") -> CoordinatorRecord:
    return CoordinatorRecord(key.encode(), None if value is None else value.encode())


def make_runtime(
    cluster: Cluster,
    rules: ShardLimits = ShardLimits(),  # noqa: B008
    take_order: Callable[[OrderFrom, Hashable], None] = lambda origin, order: None,
) -> Runtime:
    runtime: Runtime = CoordinatorRuntime(
        TOPIC, cluster.replicas, Words, clock=Clock(), read=read_now, rules=rules, take_order=take_order
    )
    cluster.follow(runtime.apply)
    return runtime


def serving(
    cluster: Cluster | None = None, *, partitions: int = 1, limits: ShardLimits | None = None
) -> Runtime:
    """With its topic there, which this node leads."""
    cluster = cluster or Cluster()
    runtime = make_runtime(cluster, limits or ShardLimits())
    cluster.show(image({TOPIC: partitions}))
    return runtime


def learn(runtime: Runtime, *records: CoordinatorRecord, index: int = 0) -> "asyncio.Future[str | ErrorCode]":
    return runtime.run(index, lambda shard, token, now: reply(token, "learned", *records))


def known(runtime: Runtime, index: int = 0) -> dict[str, str] | ErrorCode:
    answer = runtime.ask(index, lambda shard: dict(shard.known))
    assert answer.done()
    return answer.result()


def partition_of(cluster: Cluster, index: int = 0) -> Partition:
    partition = cluster.replicas.find(TOPIC, index)
    assert isinstance(partition, Partition)
    return partition


def test_a_decision_is_written_replayed_and_answered() -> None:
    async def run() -> None:
        cluster = Cluster()
        runtime = serving(cluster, partitions=2)
        assert learn(runtime, word("a"), word("b")).result() == "learned"
        assert known(runtime) == {"a": "x", "b": "x"}
        assert known(runtime, 1) == {}
        assert partition_of(cluster).log.log_end_offset == 2

    run_virtually(run)


def test_orders_are_given_once_the_records_are_committed_and_say_who_gave_them() -> None:
    async def run() -> None:
        cluster = Cluster()
        given: list[tuple[OrderFrom, Hashable, int]] = []

        def take(origin: OrderFrom, order: Hashable) -> None:
            given.append((origin, order, partition_of(cluster).log.high_watermark))

        runtime = make_runtime(cluster, take_order=take)
        cluster.show(image({TOPIC: 1}))
        effects = Effects((word("a"),), orders=("first", "second"), follow_ups=("then",))
        runtime.run(0, lambda shard, token, now: effects + reply(token, "done")).result()
        origin = OrderFrom(0, partition_of(cluster).leader_epoch)
        assert given == [(origin, "first", 1), (origin, "second", 1)]
        assert runtime.ask(0, lambda shard: list(shard.followed)).result() == [("then", None)]

    run_virtually(run)


def test_a_new_leader_epoch_makes_a_new_shard_though_the_leader_is_the_same() -> None:
    async def run() -> None:
        cluster = Cluster()
        runtime = serving(cluster)
        await runtime.load_all()
        learn(runtime, word("a")).result()
        before = runtime.ask(0, id).result()
        waiting: asyncio.Future[str | ErrorCode] = runtime.run(0, lambda shard, token, now: NOTHING)
        cluster.show(image({TOPIC: 1}, epoch=7))
        assert await waiting is ErrorCode.NOT_COORDINATOR
        assert runtime.ask(0, id).result() != before
        assert known(runtime) == {"a": "x"}

    run_virtually(run)


def test_a_shard_is_loaded_when_its_partition_comes_to_be_led_here_though_nobody_asks() -> None:
    async def run() -> None:
        cluster = Cluster()
        runtime = serving(cluster, partitions=2)
        learn(runtime, word("a")).result()
        await runtime.load_all()
        cluster.show(image({TOPIC: 2}, leader=2, epoch=1))
        assert known(runtime) is ErrorCode.NOT_COORDINATOR
        cluster.show(image({TOPIC: 2}, epoch=2))
        await elapse(1)
        assert [key for key, _ in await _rung(runtime)] == ["loaded"], "its timers did not run"
        assert not cluster.replicas.has_log(TOPIC, 1), "a partition that was never used was made by looking"
        await runtime.close()

    run_virtually(run)


def test_a_shard_is_rebuilt_from_its_log() -> None:
    async def run() -> None:
        logs = Logs()
        runtime = serving(Cluster(logs))
        learn(runtime, word("a"), word("b"))
        learn(runtime, word("a", None), word("c", "y"))
        in_transaction = ProducerIdAndEpoch(7, 0)
        for producer, key in (
            (in_transaction, "t"),
            (ProducerIdAndEpoch(8, 0), "open"),
            (ProducerIdAndEpoch(9, 0), "gone"),
        ):
            runtime.run(
                0,
                lambda shard, token, now, producer=producer, key=key: Effects(  # type: ignore[misc]
                    (word(key),), (Reply(token, "ok"),), producer=producer
                ),
            )
        assert runtime.write_marker(0, in_transaction, 1, commit=True).result() is None
        assert runtime.write_marker(0, ProducerIdAndEpoch(9, 0), 1, commit=False).result() is None
        before = known(runtime)
        await runtime.close()
        again = serving(Cluster(logs))
        assert known(again) == before == {"b": "x", "c": "y", "t": "x"}
        assert again.write_marker(0, ProducerIdAndEpoch(8, 0), 1, commit=True).result() is None
        assert known(again) == {"b": "x", "c": "y", "t": "x", "open": "x"}

    run_virtually(run)


def test_nothing_is_answered_before_what_it_rests_on_is_committed() -> None:
    async def run() -> None:
        executor = HeldExecutor()
        runtime = serving(Cluster(Logs(config=LogConfig(acks_fsync=True)), executor))
        learned = learn(runtime, word("a"))
        asked = runtime.ask(0, lambda shard: "a" in shard.known)
        await loop_turns()
        assert not learned.done()
        assert not asked.done()
        await executor.release()
        assert (learned.result(), asked.result()) == ("learned", True)

    run_virtually(run)


def test_a_commit_that_takes_too_long_is_told_as_such() -> None:
    async def run() -> None:
        runtime = serving(
            Cluster(Logs(config=LogConfig(acks_fsync=True)), HeldExecutor()),
            limits=ShardLimits(commit_timeout_ms=300),
        )
        assert await learn(runtime, word("a")) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert asyncio.get_running_loop().time() == pytest.approx(0.3)

    run_virtually(run)


def test_a_decision_that_cannot_be_written_changes_nothing_and_its_requests_are_told() -> None:
    async def run() -> None:
        runtime = serving(Cluster(Logs(config=LogConfig(max_message_bytes=200))))
        refused: asyncio.Future[str | ErrorCode] = runtime.run(
            0,
            lambda shard, token, now: Effects(
                (word("a"), word("b", "y" * 300)),
                (Reply(token, "learned"),),
                (SetTimer("never", 1),),
                follow_ups=("after it",),
                orders=("never given",),
            ),
        )
        assert refused.result() is ErrorCode.UNKNOWN_SERVER_ERROR
        followed = runtime.ask(0, lambda shard: list(shard.followed)).result()
        assert followed == [("after it", ErrorCode.UNKNOWN_SERVER_ERROR)]
        assert known(runtime) == {}
        await elapse(1)
        assert [key for key, _ in await _rung(runtime)] == ["loaded"]

    run_virtually(run)


async def _rung(runtime: Runtime) -> list[tuple[Hashable, int]]:
    answer = await runtime.ask(0, lambda shard: list(shard.rung))
    assert not isinstance(answer, ErrorCode)
    return answer


def test_a_decision_that_need_not_be_atomic_is_cut_into_batches() -> None:
    async def run() -> None:
        runtime = serving(Cluster(Logs(config=LogConfig(max_message_bytes=400))))
        records = tuple(word(f"word-{number}", "y" * 50) for number in range(20))
        runtime.run(0, lambda shard, token, now: Effects(records, (Reply(token, 1),), is_atomic=False))
        found = known(runtime)
        assert isinstance(found, dict)
        assert len(found) == 20

    run_virtually(run)


def test_timers_ring_in_order_once_and_can_be_replaced_and_cancelled() -> None:
    async def run() -> None:
        runtime = serving()
        started = Clock().wall_ms()
        timers = (
            SetTimer("late", 500),
            SetTimer("early", 100),
            SetTimer("twice", 50),
            SetTimer("twice", 200),
            SetTimer("gone", 60),
            CancelTimer("gone"),
            CancelTimer("never set"),
        )
        runtime.run(0, lambda shard, token, now: Effects(replies=(Reply(token, 1),), timers=timers))
        await elapse(2)
        assert [(key, at - started) for key, at in await _rung(runtime)] == [
            ("loaded", 10),
            ("early", 100),
            ("twice", 200),
            ("late", 500),
        ]

    run_virtually(run)


def test_a_timer_whose_records_cannot_be_written_rings_again() -> None:
    async def run() -> None:
        logs = Logs()
        runtime = serving(Cluster(logs))
        runtime.for_each(lambda shard, now: NOTHING)
        await runtime.ask(0, lambda shard: setattr(shard, "on_ring", Effects((word("timed"),))))
        logs.disk.capacity_bytes = 0
        await elapse(0.2)
        assert known(runtime) == {}
        logs.disk.capacity_bytes = None
        await elapse(1)
        assert known(runtime) == {"timed": "x"}
        assert [key for key, _ in await _rung(runtime)] == ["loaded", "loaded"]

    run_virtually(run)


def test_a_reply_may_come_from_a_later_decision() -> None:
    async def run() -> None:
        runtime = serving()

        def wait(shard: Words, token: Token[str], now_ms: int) -> Effects:
            shard.waiting.append(token)
            return NOTHING

        def release(shard: Words, token: Token[str], now_ms: int) -> Effects:
            return Effects(
                (word("done"),), tuple(Reply(each, "together") for each in (*shard.waiting, token))
            )

        waiting = [runtime.run(0, wait) for _ in range(3)]
        waiting[1].cancel()
        await loop_turns()
        assert not waiting[0].done()
        assert await runtime.run(0, release) == "together"
        assert (waiting[0].result(), waiting[2].result()) == ("together", "together")

    run_virtually(run)


def test_only_so_many_requests_may_wait() -> None:
    async def run() -> None:
        runtime = serving(limits=ShardLimits(parked_max=2))
        waiting: list[asyncio.Future[str | ErrorCode]] = [
            runtime.run(0, lambda shard, token, now: NOTHING) for _ in range(3)
        ]
        assert [each.done() for each in waiting] == [False, False, True]
        assert waiting[2].result() is ErrorCode.COORDINATOR_NOT_AVAILABLE
        waiting[0].cancel()
        await loop_turns()
        assert learn(runtime, word("a")).result() == "learned"

    run_virtually(run)


def test_requests_that_wait_are_told_when_the_leadership_goes() -> None:
    async def run() -> None:
        cluster = Cluster()
        runtime = serving(cluster)
        learn(runtime, word("a"))
        waiting: asyncio.Future[str | ErrorCode] = runtime.run(0, lambda shard, token, now: NOTHING)
        cluster.show(image({TOPIC: 1}, leader=2, epoch=1))
        assert waiting.result() is ErrorCode.NOT_COORDINATOR
        assert known(runtime) is ErrorCode.NOT_COORDINATOR
        cluster.show(image({TOPIC: 1}, epoch=2))
        assert known(runtime) == {"a": "x"}

    run_virtually(run)


def test_a_shard_goes_with_its_topic() -> None:
    async def run() -> None:
        cluster = Cluster()
        runtime = serving(cluster)
        learn(runtime, word("a"))
        cluster.show(image({}))
        assert known(runtime) is ErrorCode.NOT_COORDINATOR
        assert runtime.partition_count == 0
        cluster.show(image({TOPIC: 1}, ids=2))
        assert known(runtime) == {}

    run_virtually(run)


def test_that_decisions_cannot_be_written_is_said_once_until_they_can(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> None:
        runtime = serving(Cluster(Logs(config=LogConfig(max_message_bytes=200))))
        for said in (1, 1, 1):
            assert await learn(runtime, word("a", "y" * 300)) is ErrorCode.UNKNOWN_SERVER_ERROR
            assert caplog.text.count("MESSAGE_TOO_LARGE") == said
        assert await learn(runtime, word("b")) == "learned"
        assert await learn(runtime, word("a", "y" * 300)) is ErrorCode.UNKNOWN_SERVER_ERROR
        assert caplog.text.count("MESSAGE_TOO_LARGE") == 2

    run_virtually(run)


def test_a_shard_is_loaded_when_the_node_hears_of_its_registration_after_its_election() -> None:
    """It leads only then; what the shard has to do by itself does not wait for a request."""

    async def run() -> None:
        logs = Logs()
        runtime = serving(Cluster(logs))
        learn(runtime, word("a"))
        await runtime.close()
        cluster = Cluster(logs, is_alone=False)
        shards: list[Words] = []

        def made() -> Words:
            shards.append(Words())
            return shards[-1]

        again: Runtime = CoordinatorRuntime(TOPIC, cluster.replicas, made, clock=Clock(), read=read_now)
        cluster.follow(again.apply)
        await again.load_all()
        shown = image({TOPIC: 1}, epoch=3)
        [state] = shown.topics[TOPIC].partitions
        topic = shown.topics[TOPIC]._replace(partitions=(state._replace(leader_broker_epoch=BrokerEpoch(7)),))
        elected = replace(shown, topics={TOPIC: topic}, brokers={})
        cluster.show(elected)
        await elapse(1)
        assert known(again) is ErrorCode.NOT_COORDINATOR
        cluster.show(replace(elected, brokers={NODE: BrokerImage(NODE, {}, epoch=BrokerEpoch(7))}))
        await elapse(1)
        assert [shard.known for shard in shards] == [{"a": "x"}]
        assert shards[0].rung, "its timers run"
        cluster.show(replace(elected, brokers={NODE: BrokerImage(NODE, {}, epoch=BrokerEpoch(8))}))
        assert known(again) is ErrorCode.NOT_COORDINATOR
        await again.close()

    run_virtually(run)


def test_a_wait_of_an_earlier_epoch_does_not_end_the_timer_of_a_later_one() -> None:
    async def run() -> None:
        cluster = Cluster()
        runtime = make_runtime(cluster)
        follower = NodeId(2)
        one = image({TOPIC: 1})
        [alone] = one.topics[TOPIC].partitions

        def show(epoch: int) -> None:
            state = alone._replace(isr=alone.replicas, leader_epoch=LeaderEpoch(epoch), partition_epoch=epoch)
            topic = one.topics[TOPIC]._replace(partitions=(state,))
            brokers = {**one.brokers, follower: BrokerImage(follower, {})}
            cluster.show(replace(one, topics={TOPIC: topic}, brokers=brokers))

        show(1)
        early = learn(runtime, word("early"))
        show(2)
        assert await early is ErrorCode.NOT_COORDINATOR
        late = learn(runtime, word("late"))
        fetch = FollowerFetch(follower, BrokerEpoch(0), LeaderEpoch(2), fetch_offset=1, log_start_offset=0)
        assert partition_of(cluster).on_replica_fetch(fetch, 0.0) is None  # Of the two it has the first.
        async with asyncio.timeout(60):
            assert await late is ErrorCode.COORDINATOR_NOT_AVAILABLE
        await runtime.close()

    run_virtually(run)


def test_a_wait_of_a_shard_does_not_end_the_timer_of_one_that_is_loaded_again_under_its_epoch() -> None:
    async def run() -> None:
        cluster = Cluster()
        runtime = make_runtime(cluster)
        shown = image({TOPIC: 1}, epoch=1)
        [alone] = shown.topics[TOPIC].partitions
        topic = shown.topics[TOPIC]._replace(partitions=(alone._replace(isr=alone.replicas),))
        cluster.show(replace(shown, topics={TOPIC: topic}))
        early = learn(runtime, word("early"))
        partition = partition_of(cluster)
        partition.take_role(Follower(LeaderEpoch(1), None))
        assert known(runtime) is ErrorCode.NOT_COORDINATOR
        partition.take_role(Leader(LeaderEpoch(1)))
        late = learn(runtime, word("late"))
        assert await early is ErrorCode.NOT_COORDINATOR
        async with asyncio.timeout(60):
            assert await late is ErrorCode.COORDINATOR_NOT_AVAILABLE
        await runtime.close()

    run_virtually(run)


def test_a_long_log_is_loaded_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        logs = Logs()
        runtime = serving(Cluster(logs))
        for number in range(50):
            learn(runtime, word(f"word-{number}"))
        await runtime.close()
        monkeypatch.setattr(runtimes, "READ_AT_ONCE_BYTES", 100)
        again = serving(Cluster(logs))
        assert known(again) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert learn(again, word("new")).result() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await again.load_all()
        found = known(again)
        assert isinstance(found, dict)
        assert len(found) == 50
        await again.close()

    run_virtually(run)


def test_a_decision_for_all_shards_reaches_one_that_is_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        logs = Logs()
        runtime = serving(Cluster(logs))
        learn(runtime, word("a"))
        monkeypatch.setattr(runtimes, "READ_AT_ONCE_BYTES", 1)
        again = serving(Cluster(logs))
        assert known(again) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        again.for_each(lambda shard, now: Effects((word("b"),)))
        await again.load_all()
        assert known(again) == {"a": "x", "b": "x"}
        again.for_each(lambda shard, now: Effects((word("a", None),)))
        assert known(again) == {"b": "x"}
        await again.close()

    run_virtually(run)


def test_looking_into_all_shards_does_not_make_logs_that_were_never_used() -> None:
    async def run() -> None:
        logs = Logs()
        runtime = serving(Cluster(logs), partitions=50)
        learn(runtime, word("a"), index=7)
        await runtime.load_all()
        assert [answer.result() for answer in runtime.ask_each(lambda shard: dict(shard.known))] == [
            {"a": "x"}
        ]
        assert logs.disk.list("/data") == [f"{TOPIC}-7"]

    run_virtually(run)


def test_requests_that_wait_are_told_when_the_disk_fails() -> None:
    async def run() -> None:
        logs = Logs()
        cluster = Cluster(logs)
        runtime = serving(cluster)
        learn(runtime, word("a"))
        waiting: asyncio.Future[str | ErrorCode] = runtime.run(0, lambda shard, token, now: NOTHING)
        partition_of(cluster).take_role(Offline(LeaderEpoch(0)))
        assert learn(runtime, word("b")).result() is ErrorCode.NOT_COORDINATOR
        assert waiting.result() is ErrorCode.NOT_COORDINATOR

    run_virtually(run)


def test_a_load_is_given_up_with_the_leadership(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        logs = Logs()
        runtime = serving(Cluster(logs))
        learn(runtime, word("a"))
        monkeypatch.setattr(runtimes, "READ_AT_ONCE_BYTES", 1)
        second = Cluster(logs)
        again = serving(second)
        assert known(again) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        second.show(image({TOPIC: 1}, leader=2, epoch=1))
        await elapse(1)
        assert known(again) is ErrorCode.NOT_COORDINATOR
        await again.close()

    run_virtually(run)


def test_a_load_of_an_epoch_that_is_over_is_begun_anew_though_nobody_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def run() -> None:
        logs = Logs()
        runtime = serving(Cluster(logs))
        learn(runtime, word("a"))
        monkeypatch.setattr(runtimes, "READ_AT_ONCE_BYTES", 1)
        second = Cluster(logs)
        again = serving(second)
        loading = asyncio.create_task(again.load_all())
        await loop_turns()
        assert known(again) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        second.show(image({TOPIC: 1}, leader=2, epoch=1))
        assert known(again) is ErrorCode.NOT_COORDINATOR, "it is led elsewhere"
        second.show(image({TOPIC: 1}, epoch=2))
        await loading
        await elapse(1)
        assert known(again) == {"a": "x"}
        assert again.leads(OrderFrom(0, LeaderEpoch(2)))
        assert not again.leads(OrderFrom(0, LeaderEpoch(0)))
        await again.close()

    run_virtually(run)


def test_closing_tells_those_who_wait_and_stops_the_timers() -> None:
    async def run() -> None:
        runtime = serving()
        waiting: asyncio.Future[str | ErrorCode] = runtime.run(0, lambda shard, token, now: NOTHING)
        await runtime.close()
        assert waiting.result() is ErrorCode.NOT_COORDINATOR

    run_virtually(run)
