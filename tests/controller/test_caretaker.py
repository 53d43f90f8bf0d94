"""Large topics in pieces, what a controller left half done, and elections that others contradict."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

import pytest

from riverlog.controller import writes
from riverlog.controller.decisions.added_partitions import AddedPartitions
from riverlog.controller.decisions.deletion import TopicToDelete
from riverlog.controller.decisions.elections import Election
from riverlog.controller.decisions.topics import NewTopic, TopicPlan
from riverlog.metadata import cluster, layout, payloads
from riverlog.metadata.image import PartitionImage
from riverlog.metadata.payloads import uuid_text
from riverlog.model.ids import BrokerEpoch, LeaderEpoch, NodeId, TopicPartition
from riverlog.model.metadata_store import Create, Operation, OutcomeUnknownError, Set, StoreWriteError
from riverlog.testing.simulated_store import SimulatedEnsemble
from tests.metadata.cluster_parts import Parts, running
from tests.waiting import loop_turns, until

LARGE = 1300


def run(scenario: Callable[[SimulatedEnsemble], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario(SimulatedEnsemble())

    asyncio.run(main())


def leaderless(parts: Parts) -> int:
    return sum(
        partition.leader is None
        for topic in parts.follower.image.topics.values()
        for partition in topic.partitions
    )


def test_a_large_topic_is_made_grown_and_deleted_in_pieces() -> None:
    async def scenario(ensemble: SimulatedEnsemble) -> None:
        async with running(ensemble.connect(), brokers=3) as parts:
            before = set(await parts.store.tree("/"))
            [plan] = await parts.controller.create_topics([NewTopic("t", LARGE)])
            assert isinstance(plan, TopicPlan)
            assert len(parts.follower.image.topics["t"].partitions) == LARGE
            assert leaderless(parts) == 0
            await parts.controller.create_partitions([AddedPartitions("t", 2 * LARGE)])
            assert len(parts.follower.image.topics["t"].partitions) == 2 * LARGE
            assert leaderless(parts) == 0
            [deletion] = await parts.controller.delete_topics([TopicToDelete("t")])
            assert deletion.refusal is None
            left = set(await parts.store.tree("/")) - before
            assert left == {layout.deleted_topic(uuid_text(plan.topic_id))}

    run(scenario)


def test_no_write_has_more_states_than_a_store_takes() -> None:
    state = [
        Create("/brokers/topics/t/partitions/1"),
        Create("/brokers/topics/t/partitions/1/state", b"x" * 90),
    ]
    pieces = list(writes.in_pieces([state] * 1300, 1024 * 1024))
    assert [len(piece) // 2 for piece in pieces] == [500, 500, 300]
    assert all(len(piece) == 2 for piece in writes.in_pieces([state] * 3, 300))


def test_a_new_controller_makes_the_states_that_a_topic_lacks() -> None:
    async def scenario(ensemble: SimulatedEnsemble) -> None:
        async with running(ensemble.connect()) as parts:
            [plan] = await parts.controller.create_topics([NewTopic("t", 3)], validate_only=True)
            assert isinstance(plan, TopicPlan)
            await parts.store.multi(writes.beginning(plan))
        async with running(ensemble.connect()) as parts:
            assert leaderless(parts) == 0
            assert len(parts.follower.image.topics["t"].partitions) == 3

    run(scenario)


def test_a_new_controller_finishes_a_deletion() -> None:
    async def scenario(ensemble: SimulatedEnsemble) -> None:
        async with running(ensemble.connect()) as parts:
            await parts.controller.create_topics([NewTopic("t", 3), NewTopic("u")])
            await parts.store.multi([writes.mark_to_delete("t")])
            await parts.store.delete(layout.partition_state("t", 1))
        async with running(ensemble.connect()) as parts:
            assert set(parts.follower.image.topics) == {"u"}
            assert await parts.store.children(layout.TOPICS_TO_DELETE) == []

    run(scenario)


def test_a_broker_that_goes_takes_its_leaders_and_brings_them_back_under_the_next_epoch() -> None:
    async def scenario(ensemble: SimulatedEnsemble) -> None:
        async with running(ensemble.connect(), brokers=2) as parts:
            await parts.controller.create_topics([NewTopic("t", 4)])
            data = await parts.store.get(layout.broker(2))
            assert data is not None
            await parts.store.delete(layout.broker(2))
            await until(lambda: {(each.leader, each.leader_epoch) for each in of_two(parts)} == {(None, 1)})
            assert {each.isr for each in of_two(parts)} == {(NodeId(2),)}
            await parts.store.create(layout.broker(2), data.data, ephemeral=True)
            await until(lambda: {(each.leader, each.leader_epoch) for each in of_two(parts)} == {(2, 2)})

    run(scenario)


def test_what_changes_until_a_new_controller_has_enough_of_it_is_looked_at_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A broker comes and goes with each state that is written because of it."""

    async def scenario(ensemble: SimulatedEnsemble) -> None:
        async with running(ensemble.connect(), brokers=2) as parts:
            await parts.controller.create_topics([NewTopic("t", 2)])
        beside, store, moves = ensemble.connect(), ensemble.connect(), 0
        multi, known = store.multi, b""

        async def multi_and_move(operations: Sequence[Operation]) -> None:
            nonlocal moves, known
            await multi(operations)
            decided = [each for each in operations if isinstance(each, Set) and "/partitions/" in each.path]
            if moves == _MOVES or not any(_is_of_two(each.data) for each in decided):
                return
            moves += 1
            there = await beside.get(layout.broker(2))
            if there is None:
                await beside.create(layout.broker(2), known, ephemeral=True)
            else:
                known = there.data
                await beside.delete(layout.broker(2))

        holder = payloads.encode_controller(NodeId(3), 0)
        await beside.create(layout.CONTROLLER, holder, ephemeral=True)
        async with running(store, brokers=2) as parts:
            assert not parts.controller.is_active
            monkeypatch.setattr(store, "multi", multi_and_move)
            await beside.delete(layout.CONTROLLER)
            await until(lambda: moves == _MOVES and parts.controller.is_active)
            await until(lambda: [each.leader for each in of_two(parts)] == [None])

    run(scenario)


_MOVES = 5
"""As often as a controller tries at once; the last time the broker goes."""


def _is_of_two(data: bytes) -> bool:
    return payloads.decode_partition("a state", data).isr == (NodeId(2),)


def test_an_election_that_is_contradicted_is_decided_again() -> None:
    async def scenario(ensemble: SimulatedEnsemble) -> None:
        async with running(ensemble.connect(), brokers=2) as parts:
            await parts.controller.create_topics([NewTopic("t", 2)])
            index = next(
                i for i, p in enumerate(parts.follower.image.topics["t"].partitions) if p.leader == 2
            )
            state = payloads.PartitionNode(NodeId(2), LeaderEpoch(9), (NodeId(2),), 1, BrokerEpoch(5))
            ensemble.watch_delay_s = 0.05
            await parts.store.delete(layout.broker(2))
            await parts.store.multi(
                [Set(layout.partition_state("t", index), payloads.encode_partition(state))]
            )
            await until(lambda: parts.follower.image.topics["t"].partitions[index].leader is None)
            assert parts.follower.image.topics["t"].partitions[index].leader_epoch == 10

    run(scenario)


def test_many_elections_are_few_writes_and_one_that_is_contradicted_leaves_the_others() -> None:
    async def scenario(ensemble: SimulatedEnsemble) -> None:
        async with running(ensemble.connect(), brokers=2) as parts:
            await parts.controller.create_topics([NewTopic("t", LARGE)])
            led = [i for i, p in enumerate(parts.follower.image.topics["t"].partitions) if p.leader == 2]
            moved = payloads.PartitionNode(NodeId(2), LeaderEpoch(9), (NodeId(2),), 1, BrokerEpoch(5))
            multi, sizes = parts.store.multi, list[int]()

            async def counting(operations: Sequence[Operation]) -> None:
                sizes.append(sum(isinstance(each, Set) for each in operations))
                await multi(operations)

            parts.store.multi = counting  # type: ignore[method-assign]
            ensemble.watch_delay_s = 0.05
            await parts.store.delete(layout.broker(2))
            path = layout.partition_state("t", led[len(led) // 2])
            await multi([Set(path, payloads.encode_partition(moved))])
            await until(lambda: all(each.leader is None for each in of_two(parts)))
            epochs = [each.leader_epoch for each in of_two(parts)]
            assert sorted(epochs) == [1] * (len(led) - 1) + [10]
            # Those that shared a step with it were written by themselves.
            assert sizes.count(1) <= 101
            assert max(sizes) == 100
            assert sum(size > 1 for size in sizes) <= len(led) // 100 + 1

    run(scenario)


def test_elections_whose_answer_is_lost_are_known_although_one_of_them_was_changed_since() -> None:
    async def scenario(ensemble: SimulatedEnsemble) -> None:
        async with running(ensemble.connect(), brokers=2) as parts:
            assignments = [(index, (1, 2)) for index in range(5)]
            await parts.controller.create_topics([NewTopic("t", assignments=assignments)])
            asked = [TopicPartition("t", index) for index in range(5)]
            paths = [layout.partition_state(*each) for each in asked]
            led_by_two = payloads.PartitionNode(
                NodeId(2), LeaderEpoch(9), (NodeId(1), NodeId(2)), 1, BrokerEpoch(5)
            )
            data = payloads.encode_partition(led_by_two)
            await parts.store.multi([Set(path, data) for path in paths])
            await parts.follower.refresh(paths)
            multi, is_first = parts.store.multi, True

            async def multi_of_unknown_outcome(operations: Sequence[Operation]) -> None:
                nonlocal is_first
                await multi(operations)
                if is_first:
                    is_first = False
                    changed = payloads.PartitionNode(
                        NodeId(1), LeaderEpoch(10), (NodeId(1),), 1, BrokerEpoch(5)
                    )
                    await multi([Set(paths[0], payloads.encode_partition(changed))])
                    raise OutcomeUnknownError("lost")

            parts.store.multi = multi_of_unknown_outcome  # type: ignore[method-assign]
            outcomes = await parts.controller.elect_leaders(Election.PREFERRED, asked)
            assert outcomes == dict.fromkeys(asked)
            assert [each.leader for each in parts.follower.image.topics["t"].partitions] == [1] * 5

    run(scenario)


def test_what_is_refused_again_and_again_is_tried_once_at_a_time(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """However many changes it was refused after, each of which is a reason to try again."""
    monkeypatch.setattr("riverlog.controller.controller._SETTLE_AGAIN_S", 0.1)

    async def refused(operations: Sequence[Operation]) -> None:
        raise StoreWriteError("full")

    async def scenario(ensemble: SimulatedEnsemble) -> None:
        beside = ensemble.connect()
        async with running(ensemble.connect(), brokers=5) as parts:
            await parts.controller.create_topics([NewTopic("t", 5)])
            monkeypatch.setattr(parts.store, "multi", refused)
            for count, broker in enumerate((2, 3, 4, 5), 1):
                await beside.delete(layout.broker(broker))
                await until(lambda count=count: len(told()) >= count)  # type: ignore[misc]
            caplog.clear()
            began_s = asyncio.get_running_loop().time()
            await until(lambda: len(told()) >= 6)
            assert asyncio.get_running_loop().time() - began_s > 0.45

    def told() -> list[str]:
        return [each.message for each in caplog.records if "have not got their leaders" in each.message]

    run(scenario)


def test_what_is_refused_while_the_controller_stops_is_not_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refusing, is_asked = asyncio.Event(), asyncio.Event()

    async def refused(operations: Sequence[Operation]) -> None:
        is_asked.set()
        await refusing.wait()
        raise StoreWriteError("full")

    async def scenario(ensemble: SimulatedEnsemble) -> None:
        beside = ensemble.connect()
        async with running(ensemble.connect(), brokers=2) as parts:
            await parts.controller.create_topics([NewTopic("t", 2)])
            monkeypatch.setattr(parts.store, "multi", refused)
            await beside.delete(layout.broker(2))
            await is_asked.wait()
            closing = asyncio.create_task(parts.controller.close())
            await loop_turns()
            refusing.set()
            await closing
            assert parts.controller._again is None

    run(scenario)


def test_that_a_store_takes_no_elections_is_told_once_for_all_of_them(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("riverlog.controller.controller._SETTLE_AGAIN_S", 1000.0)
    tried: list[int] = []

    async def refused(operations: Sequence[Operation]) -> None:
        tried.append(sum(isinstance(each, Set) for each in operations))
        raise StoreWriteError("full")

    async def scenario(ensemble: SimulatedEnsemble) -> None:
        async with running(ensemble.connect(), brokers=2) as parts:
            await parts.controller.create_topics([NewTopic("t", LARGE)])
            monkeypatch.setattr(parts.store, "multi", refused)
            await ensemble.connect().delete(layout.broker(2))
            await until(lambda: any("have not got their leaders" in each.message for each in caplog.records))
            rounds = sum(tried) / LARGE  # A half of them, together and then each by itself.
            assert rounds >= 1
            assert sum(each.message == "full" for each in caplog.records) == 2 * rounds

    run(scenario)


def of_two(parts: Parts) -> list[PartitionImage]:
    return [each for each in parts.follower.image.topics["t"].partitions if each.replicas == (NodeId(2),)]


def test_deleted_topics_are_remembered_for_thirty_days() -> None:
    now_ms, day_ms = 1_700_000_000_000, 24 * 60 * 60 * 1000
    old, young, undated = (layout.deleted_topic(uuid_text(UUID(int=number))) for number in (1, 2, 3))

    async def scenario(ensemble: SimulatedEnsemble) -> None:
        store = ensemble.connect()
        await cluster.prepare(store, remembered=None, fresh_id=UUID(int=7))
        await store.create(old, payloads.encode_deleted_topic("a", now_ms - 31 * day_ms))
        await store.create(young, payloads.encode_deleted_topic("b", now_ms - 29 * day_ms))
        await store.create(undated, b'{"version": 1, "topic": "c"}')
        async with running(store) as parts:
            left = set(await parts.store.tree(layout.DELETED_TOPICS)) - {layout.DELETED_TOPICS}
            assert left == {young, undated}

    run(scenario)
