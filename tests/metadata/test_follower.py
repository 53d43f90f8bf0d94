"""The image follows the store."""

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest

from riverlog.metadata import layout, payloads
from riverlog.metadata.delta import ImageDelta
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.going_back import REMEMBERED_MAX
from riverlog.metadata.image import ClusterImage, ConfigResource, PartitionImage, ResourceType
from riverlog.model.errors import FormatError
from riverlog.model.ids import LeaderEpoch, NodeId, TopicId
from riverlog.model.metadata_store import (
    Create,
    Delete,
    Operation,
    Set,
    StoreError,
    UnreachableError,
    Versioned,
)
from riverlog.testing.simulated_store import SimulatedEnsemble, SimulatedStore
from riverlog.testing.simulated_tree import Snapshot
from tests.virtual_time import elapse, run_virtually

TOPIC_ID = TopicId(UUID(int=5))
ONE = (NodeId(1),)
STATE = payloads.PartitionNode(NodeId(1), LeaderEpoch(3), ONE, 1)


def topic_nodes(name: str, partitions: int, topic_id: TopicId = TOPIC_ID) -> list[Operation]:
    operations: list[Operation] = [
        Create(layout.topic(name), payloads.encode_topic(payloads.TopicNode(topic_id, (ONE,) * partitions))),
        Create(layout.partitions(name)),
    ]
    for index in range(partitions):
        operations.append(Create(layout.partition(name, index)))
        operations.append(Create(layout.partition_state(name, index), payloads.encode_partition(STATE)))
    return operations


def follow(scenario: Callable[[SimulatedStore, MetadataFollower], Awaitable[None]]) -> None:
    async def main() -> None:
        store = SimulatedEnsemble().connect()
        for path in layout.PERSISTENT:
            if await store.get(path) is None:
                await store.create(path)
        follower = MetadataFollower(store)
        await follower.start()
        await scenario(store, follower)
        await follower.close()

    run_virtually(main)


def test_the_image_shows_topics_brokers_controller_and_configs() -> None:
    async def scenario(store: SimulatedStore, follower: MetadataFollower) -> None:
        await store.multi(topic_nodes("t", 2))
        await store.create(layout.CONTROLLER, payloads.encode_controller(1, 0))
        await store.create(f"{layout.TOPIC_CONFIGS}/t", payloads.encode_config({"retention.ms": "5"}))
        await store.create(f"{layout.BROKER_CONFIGS}/<default>", payloads.encode_config({"a": "b"}))
        await store.create(f"{layout.GROUP_CONFIGS}/a%2Fb", payloads.encode_config({"c": "d"}))
        await follower.refresh()
        image = follower.image
        assert image.partition("t", 1) == PartitionImage(
            ONE, ONE, NodeId(1), LeaderEpoch(3), 0, controller_epoch=1
        )
        assert image.partition("t", 2) is None
        assert image.partition("t", -1) is None
        assert image.topic_by_id(TOPIC_ID) is image.topics["t"]
        assert image.controller_id == 1
        assert image.topic_config("t") == {"retention.ms": "5"}
        assert image.broker_config(None) == {"a": "b"}
        assert image.broker_config(1) == {}
        assert image.configs[ConfigResource(ResourceType.GROUP, "a/b")] == {"c": "d"}

    follow(scenario)


def test_subscribers_get_what_differs_before_refresh_returns() -> None:
    async def scenario(store: SimulatedStore, follower: MetadataFollower) -> None:
        seen: list[tuple[int, int]] = []
        follower.subscribe(lambda delta: seen.append((len(delta.old.topics), len(delta.created))))
        await store.multi(topic_nodes("t", 1))
        await follower.refresh()
        assert seen == [(0, 1)]

    follow(scenario)


def test_a_state_of_a_topic_made_anew_is_not_shown_under_the_id_of_the_one_before() -> None:
    """Its state is read before anybody has told that the topic is another."""

    async def scenario(store: SimulatedStore, follower: MetadataFollower) -> None:
        await store.multi(topic_nodes("t", 1))
        await follower.refresh()
        seen: list[tuple[UUID, int]] = []

        def note(delta: ImageDelta) -> None:
            topic = delta.new.topics["t"]
            seen.append((topic.topic_id, topic.partitions[0].leader_epoch))

        follower.subscribe(note)
        ensemble = store._ensemble
        ensemble.watch_delay_s = 3600.0
        ensemble.commit([Delete(each.path) for each in reversed(topic_nodes("t", 1))], 0)
        again, state = TopicId(UUID(int=6)), layout.partition_state("t", 0)
        ensemble.commit(topic_nodes("t", 1, again), 0)
        ensemble.commit(
            [Set(state, payloads.encode_partition(STATE._replace(leader_epoch=LeaderEpoch(4))))], 0
        )
        await follower.refresh([state])
        assert seen == [(again, 4)]

    follow(scenario)


def test_what_the_image_does_not_show_makes_no_new_image() -> None:
    async def scenario(store: SimulatedStore, follower: MetadataFollower) -> None:
        seen: list[ClusterImage] = []
        follower.subscribe(lambda delta: seen.append(delta.new))
        await store.create("/admin/something", b"x")
        await store.set(layout.TOPICS, b"x")
        await follower.refresh()
        assert seen == []

    follow(scenario)


def test_parts_that_did_not_change_stay_the_same_objects() -> None:
    async def scenario(store: SimulatedStore, follower: MetadataFollower) -> None:
        await store.multi(topic_nodes("t", 1))
        await follower.refresh()
        before = follower.image
        await store.create(f"{layout.TOPIC_CONFIGS}/t", payloads.encode_config({"retention.ms": "5"}))
        await follower.refresh()
        after = follower.image
        assert after.version == before.version + 1
        assert after.topics is before.topics
        assert after.configs is not before.configs

    follow(scenario)


def test_partitions_in_the_same_state_are_one_object() -> None:
    async def scenario(store: SimulatedStore, follower: MetadataFollower) -> None:
        await store.multi(topic_nodes("t", 100))
        await follower.refresh()
        assert len({id(partition) for partition in follower.image.topics["t"].partitions}) == 1

    follow(scenario)


def test_a_change_of_one_state_reads_that_state_alone() -> None:
    async def scenario(store: SimulatedStore, follower: MetadataFollower) -> None:
        await store.multi(topic_nodes("t", 3))
        await follower.refresh()
        read: list[str] = []
        tree = store.tree

        async def recorded(path: str) -> object:
            read.append(path)
            return await tree(path)

        store.tree = recorded  # type: ignore[method-assign, assignment]
        changed = payloads.PartitionNode(None, LeaderEpoch(4), ONE, 1)
        await store.set(layout.partition_state("t", 1), payloads.encode_partition(changed))
        await follower.refresh()
        assert read == [layout.partition_state("t", 1)]
        assert follower.image.partition("t", 0) == PartitionImage(
            ONE, ONE, NodeId(1), LeaderEpoch(3), 0, controller_epoch=1
        )
        assert follower.image.partition("t", 1) == PartitionImage(
            ONE, ONE, None, LeaderEpoch(4), 1, controller_epoch=1
        )

    follow(scenario)


def test_a_topic_made_again_under_its_name_has_only_its_new_id() -> None:
    async def scenario(store: SimulatedStore, follower: MetadataFollower) -> None:
        await store.multi(topic_nodes("t", 1))
        await follower.refresh()
        again = TopicId(UUID(int=6))
        replaced = payloads.encode_topic(payloads.TopicNode(again, (ONE,)))
        await store.multi([Set(layout.topic("t"), replaced)])
        await follower.refresh()
        assert follower.image.topic_names == {again: "t"}

    follow(scenario)


def test_many_changes_at_once_are_read_by_their_root() -> None:
    async def scenario(store: SimulatedStore, follower: MetadataFollower) -> None:
        operations: list[Operation] = []
        for number in range(200):
            operations += topic_nodes(f"t{number}", 1, TopicId(UUID(int=100 + number)))
        await store.multi(operations)
        await follower.refresh()
        assert len(follower.image.topics) == 200
        assert len(follower.image.topic_names) == 200

    follow(scenario)


def test_malformed_metadata_fails_those_who_wait_and_those_who_come_after() -> None:
    async def scenario(store: SimulatedStore, follower: MetadataFollower) -> None:
        await store.create(layout.topic("t"), b"{")
        with pytest.raises((FormatError, StoreError)):
            await follower.refresh()
        with pytest.raises(StoreError, match="no longer followed"):
            await follower.refresh()

    follow(scenario)


def test_a_follower_that_starts_late_sees_everything_as_one_change() -> None:
    async def main() -> None:
        ensemble = SimulatedEnsemble()
        store = ensemble.connect()
        for path in layout.PERSISTENT:
            await store.create(path) if await store.get(path) is None else None
        await store.multi(topic_nodes("t", 2))
        follower = MetadataFollower(ensemble.connect())
        seen: list[ImageDelta] = []
        follower.subscribe(seen.append)
        await follower.start()
        assert [(len(each.old.topics), len(each.created)) for each in seen] == [(0, 1)]
        await follower.close()

    asyncio.run(main())


def reading_fails(store: SimulatedStore, times: int) -> None:
    """The next reads fail as those of a store that does not answer."""
    tree, left = store.tree, times

    async def failing(path: str) -> dict[str, Versioned]:
        nonlocal left
        left -= 1
        if left >= 0:
            raise UnreachableError("The metadata store does not answer.")
        return await tree(path)

    store.tree = failing  # type: ignore[method-assign]


def test_a_failed_read_is_tried_again_and_loses_no_change() -> None:
    async def scenario(store: SimulatedStore, follower: MetadataFollower) -> None:
        reading_fails(store, 3)
        await store.multi(topic_nodes("t", 2))
        await follower.refresh()
        assert len(follower.image.topics["t"].partitions) == 2

    follow(scenario)


def test_a_follower_that_starts_while_the_store_does_not_answer_waits_for_it() -> None:
    async def main() -> None:
        ensemble = SimulatedEnsemble()
        await ensemble.connect().create(f"{layout.TOPIC_CONFIGS}/t", payloads.encode_config({"a": "b"}))
        store = ensemble.connect()
        reading_fails(store, 2)
        follower = MetadataFollower(store)
        await follower.start()
        assert follower.image.topic_config("t") == {"a": "b"}
        await follower.close()

    asyncio.run(main())


def test_what_was_missed_while_cut_off_is_read_after_the_reconnect() -> None:
    async def scenario(store: SimulatedStore, follower: MetadataFollower) -> None:
        other = store._ensemble.connect()
        store.suspend()
        await other.multi(topic_nodes("t", 1))
        await other.delete(layout.topic("t") + "/partitions/0/state")
        store._unheard.clear()  # ZooKeeper replays nothing.
        store.resume()
        await follower.refresh()
        assert follower.image.topics["t"].partitions[0].leader is None

    follow(scenario)


def test_a_new_session_is_synced_before_it_is_read_and_the_image_does_not_go_back() -> None:
    async def scenario(store: SimulatedStore, follower: MetadataFollower) -> None:
        epochs: list[int] = []
        follower.subscribe(lambda delta: epochs.append(delta.new.topics["t"].partitions[0].leader_epoch))
        await store.multi(topic_nodes("t", 1))
        await follower.refresh()
        store._ensemble.fall_behind()
        newer = payloads.PartitionNode(NodeId(1), LeaderEpoch(4), ONE, 1)
        await store.set(layout.partition_state("t", 0), payloads.encode_partition(newer))
        await follower.refresh()
        store.expire()
        await store._ensemble.connect().set(layout.TOPICS, b"")
        await follower.refresh()
        assert epochs == [3, 4]

    follow(scenario)


def test_a_store_that_has_gone_back_is_not_followed_back() -> None:
    async def scenario(store: SimulatedStore, follower: MetadataFollower) -> None:
        ensemble = store._ensemble
        snapshot = ensemble.snapshot()
        await store.multi(topic_nodes("t", 1))
        await follower.refresh()
        ensemble.restore(snapshot)
        waiting = asyncio.create_task(follower.refresh())
        await elapse(0.1)
        assert not waiting.done()
        assert "t" in follower.image.topics
        waiting.cancel()

    follow(scenario)


def state_of(epoch: int) -> bytes:
    return payloads.encode_partition(STATE._replace(leader_epoch=LeaderEpoch(epoch)))


async def restored(follower: MetadataFollower, store: SimulatedStore, snapshot: Snapshot) -> None:
    """From a backup, by servers whose transactions go on from higher numbers than there were."""
    store._ensemble.restore(snapshot._replace(last_transaction=1 << 32))
    image = follower.image
    waiting = asyncio.create_task(follower.refresh())
    await elapse(0.2)
    assert not waiting.done()
    assert follower.image is image
    waiting.cancel()


def test_states_that_go_back_are_not_followed_whatever_the_number_of_the_transaction() -> None:
    async def scenario(store: SimulatedStore, follower: MetadataFollower) -> None:
        await store.multi(topic_nodes("t", 2))
        older = store._ensemble.snapshot()
        await store.set(layout.partition_state("t", 1), state_of(4))
        await follower.refresh()
        newest = store._ensemble.snapshot()
        await restored(follower, store, older)
        store._ensemble.restore(newest._replace(last_transaction=2 << 32))
        await store._ensemble.connect().set(layout.partition_state("t", 1), state_of(5))
        await follower.refresh()
        assert follower.image.topics["t"].partitions[1].leader_epoch == 5

    follow(scenario)


def test_partitions_that_are_not_there_yet_are_not_followed() -> None:
    async def scenario(store: SimulatedStore, follower: MetadataFollower) -> None:
        await store.multi(topic_nodes("t", 1))
        older = store._ensemble.snapshot()
        await store.multi(
            [
                Set(layout.topic("t"), payloads.encode_topic(payloads.TopicNode(TOPIC_ID, (ONE,) * 2))),
                Create(layout.partition("t", 1)),
                Create(layout.partition_state("t", 1), state_of(0)),
            ]
        )
        await follower.refresh()
        await restored(follower, store, older)

    follow(scenario)


def test_a_topic_that_is_gone_without_having_been_deleted_stays() -> None:
    async def scenario(store: SimulatedStore, follower: MetadataFollower) -> None:
        older = store._ensemble.snapshot()
        await store.multi(topic_nodes("t", 1))
        await follower.refresh()
        await restored(follower, store, older)

    follow(scenario)


@pytest.mark.parametrize("others", [0, REMEMBERED_MAX])
def test_a_topic_that_was_deleted_while_the_store_was_away_goes(others: int) -> None:
    """Of so many others that this one is not remembered any more, too."""

    async def scenario(store: SimulatedStore, follower: MetadataFollower) -> None:
        await store.multi(topic_nodes("t", 1))
        await follower.refresh()
        store.suspend()
        other = store._ensemble.connect()
        remembered = [TopicId(UUID(int=100 + each)) for each in range(others)] or [TOPIC_ID]
        for each in remembered:
            store._ensemble.commit([Create(layout.deleted_topic(payloads.uuid_text(each)))], other.session)
        await other.multi([Delete(each.path) for each in reversed(topic_nodes("t", 1))])
        store.resume()
        await follower.refresh()
        assert follower.image.topics == {}

    follow(scenario)


def test_a_failover_of_a_whole_topic_builds_its_partitions_once() -> None:
    async def scenario(store: SimulatedStore, follower: MetadataFollower) -> None:
        await store.multi(topic_nodes("t", 300))
        await follower.refresh()
        seen: list[int] = []
        follower.subscribe(lambda delta: seen.append(len(delta.partitions["t"])))
        changed = payloads.encode_partition(payloads.PartitionNode(None, LeaderEpoch(4), ONE, 1))
        await store.multi([Set(layout.partition_state("t", index), changed) for index in range(300)])
        await follower.refresh()
        assert seen == [300]
        assert {each.leader_epoch for each in follower.image.topics["t"].partitions} == {4}

    follow(scenario)


def test_partitions_that_come_in_pieces_are_read_one_by_one() -> None:
    async def scenario(store: SimulatedStore, follower: MetadataFollower) -> None:
        operations = topic_nodes("t", 3)
        await store.multi(operations[:4])
        await follower.refresh()
        read: list[str] = []
        tree = store.tree

        async def recorded(path: str) -> dict[str, Versioned]:
            read.append(path)
            return await tree(path)

        store.tree = recorded  # type: ignore[method-assign]
        await store.multi(operations[4:])
        await follower.refresh()
        assert sorted(read) == [layout.partition_state("t", index) for index in (1, 2)]
        assert {each.leader for each in follower.image.topics["t"].partitions} == {1}

    follow(scenario)
