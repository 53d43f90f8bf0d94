"""The controller carries decisions out: in one step, fenced, and seen when the call returns."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from riverlog.controller.decisions.added_partitions import AddedPartitions
from riverlog.controller.decisions.deletion import TopicToDelete
from riverlog.controller.decisions.refusals import Refusal
from riverlog.controller.decisions.topics import NewTopic, TopicPlan
from riverlog.controller.setting_changes import ConfigChange
from riverlog.metadata import layout
from riverlog.metadata.image import ConfigResource, PartitionImage, ResourceType
from riverlog.metadata.payloads import uuid_text
from riverlog.metadata.registration import register
from riverlog.metadata.stores.embedded_store import EmbeddedStore
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, NodeId
from riverlog.model.metadata_store import UnreachableError, Versioned
from riverlog.testing.simulated_store import SimulatedEnsemble, SimulatedStore
from tests.metadata.cluster_parts import Parts, registrant, running
from tests.waiting import loop_turns, until


def run(scenario: Callable[[Parts], Awaitable[None]], brokers: int = 1) -> None:
    async def main() -> None:
        async with running(brokers=brokers) as parts:
            await scenario(parts)

    asyncio.run(main())


def test_a_created_topic_is_in_the_image_when_the_call_returns() -> None:
    async def scenario(parts: Parts) -> None:
        [plan] = await parts.controller.create_topics([NewTopic("t", 2, configs={"retention.ms": "5"})])
        assert isinstance(plan, TopicPlan)
        image = parts.follower.image
        assert image.topics["t"].topic_id == plan.topic_id
        assert image.partition("t", 1) == PartitionImage(
            (NodeId(1),),
            (NodeId(1),),
            NodeId(1),
            LeaderEpoch(0),
            0,
            image.brokers[NodeId(1)].epoch,
            controller_epoch=1,
        )
        assert image.topic_config("t") == {"retention.ms": "5"}

    run(scenario)


def test_the_store_holds_a_topic_in_kafkas_layout() -> None:
    async def scenario(parts: Parts) -> None:
        await parts.controller.create_topics([NewTopic("t", 1, 2, configs={"retention.ms": "5"})])
        tree = await parts.store.tree("/")
        topic = json.loads(tree["/brokers/topics/t"].data)
        assert set(topic) == {"version", "topic_id", "partitions", "adding_replicas", "removing_replicas"}
        assert len(topic["partitions"]["0"]) == 2
        state = json.loads(tree["/brokers/topics/t/partitions/0/state"].data)
        assert state["leader"] == topic["partitions"]["0"][0]
        assert sorted(state["isr"]) == [1, 2]
        assert json.loads(tree["/config/topics/t"].data) == {"version": 1, "config": {"retention.ms": "5"}}
        assert json.loads(tree["/controller"].data)["brokerid"] == 1
        assert tree["/controller_epoch"].data == b"1"

    run(scenario, brokers=2)


def test_validation_only_changes_nothing() -> None:
    async def scenario(parts: Parts) -> None:
        before = parts.follower.image
        [plan] = await parts.controller.create_topics([NewTopic("t", 2)], validate_only=True)
        assert isinstance(plan, TopicPlan)
        assert parts.follower.image is before
        assert await parts.store.get(layout.topic("t")) is None

    run(scenario)


def test_topics_of_one_request_come_in_one_step() -> None:
    async def scenario(parts: Parts) -> None:
        seen: list[int] = []
        parts.follower.subscribe(lambda delta: seen.append(len(delta.created)))
        await parts.controller.create_topics([NewTopic(f"t{n}") for n in range(5)] + [NewTopic("a b")])
        assert seen == [5]

    run(scenario)


def test_of_two_who_create_the_same_topic_at_once_one_is_told_that_it_exists() -> None:
    async def scenario(parts: Parts) -> None:
        outcomes = await asyncio.gather(*(parts.controller.create_topics([NewTopic("t")]) for _ in range(4)))
        refusals = [outcome for [outcome] in outcomes if isinstance(outcome, Refusal)]
        assert [refusal.error for refusal in refusals] == [ErrorCode.TOPIC_ALREADY_EXISTS] * 3

    run(scenario)


def test_a_caller_that_goes_away_does_not_leave_a_half_seen_topic() -> None:
    async def scenario(parts: Parts) -> None:
        caller = asyncio.create_task(parts.controller.create_topics([NewTopic("t")]))
        await loop_turns()
        caller.cancel()
        [outcome] = await parts.controller.create_topics([NewTopic("t")])
        assert isinstance(outcome, Refusal)
        assert outcome.error == ErrorCode.TOPIC_ALREADY_EXISTS

    run(scenario)


def test_growth_keeps_the_partitions_that_are_there() -> None:
    async def scenario(parts: Parts) -> None:
        await parts.controller.create_topics([NewTopic("t", 9)])
        before = parts.follower.image.topics["t"]
        await parts.controller.create_partitions([AddedPartitions("t", 12)])
        after = parts.follower.image.topics["t"]
        assert after.topic_id == before.topic_id
        assert len(after.partitions) == 12
        assert after.partitions[:9] == before.partitions

    run(scenario)


def test_a_deleted_topic_leaves_nothing_but_its_id_in_the_store() -> None:
    async def scenario(parts: Parts) -> None:
        before = set(await parts.store.tree("/"))
        await parts.controller.create_topics([NewTopic("t", 12, configs={"a": "b"}), NewTopic("u", 1)])
        ids = [topic.topic_id for topic in parts.follower.image.topics.values()]
        await parts.controller.delete_topics([TopicToDelete("t"), TopicToDelete("u"), TopicToDelete("none")])
        left = set(await parts.store.tree("/")) - before
        assert left == {layout.deleted_topic(uuid_text(topic_id)) for topic_id in ids}
        assert parts.follower.image.topics == {}
        assert parts.follower.image.topic_names == {}
        assert parts.follower.image.configs == {}

    run(scenario)


def test_configs_are_decided_on_what_the_write_is_based_on() -> None:
    async def scenario(parts: Parts) -> None:
        resource = ConfigResource(ResourceType.BROKER, "")

        def counted(number: int) -> ConfigChange:
            return ConfigChange(
                resource, lambda image: {**image.configs.get(resource, {}), f"key{number}": "x"}
            )

        await asyncio.gather(*(parts.controller.alter_configs([counted(n)]) for n in range(5)))
        assert parts.follower.image.broker_config(None) == {f"key{n}": "x" for n in range(5)}
        await parts.controller.alter_configs([ConfigChange(resource, lambda image: {})])
        assert parts.follower.image.configs == {}

    run(scenario)


def test_a_refused_change_leaves_the_others_of_its_request_alone() -> None:
    async def scenario(parts: Parts) -> None:
        refusal = Refusal(ErrorCode.INVALID_CONFIG, "no")
        outcomes = await parts.controller.alter_configs(
            [
                ConfigChange(ConfigResource(ResourceType.GROUP, "a/b"), lambda image: {"x": "1"}),
                ConfigChange(ConfigResource(ResourceType.TOPIC, "t"), lambda image: refusal),
            ]
        )
        assert outcomes == [None, refusal]
        assert list(parts.follower.image.configs) == [ConfigResource(ResourceType.GROUP, "a/b")]

    run(scenario)


def test_what_cannot_be_written_is_refused_and_done_later(tmp_path: Path) -> None:
    """A full disk is an outcome for each entry, not the end of a connection."""

    async def main() -> None:
        store = await EmbeddedStore.open(str(tmp_path / "m.sqlite"), ThreadPoolExecutor(1))
        async with running(store) as parts:
            controller = parts.controller
            await controller.create_topics([NewTopic("t")])
            await bound(store, 1)
            topic = ConfigResource(ResourceType.TOPIC, "t")
            settings = {"retention.ms": "5" * 50_000}
            created = await controller.create_topics([NewTopic("u", 5000), NewTopic("bad name")])
            grown = await controller.create_partitions(
                [AddedPartitions("t", 5000), AddedPartitions("none", 2)]
            )
            [altered] = await controller.alter_configs([ConfigChange(topic, lambda _: settings)])
            assert [_error(each) for each in created] == [
                ErrorCode.KAFKA_STORAGE_ERROR,
                ErrorCode.INVALID_TOPIC_EXCEPTION,
            ]
            assert [_error(each) for each in grown] == [
                ErrorCode.KAFKA_STORAGE_ERROR,
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ]
            assert _error(altered) == ErrorCode.KAFKA_STORAGE_ERROR
            assert parts.follower.image.topics.keys() == {"t"}
            await bound(store, 2**30)
            [plan] = await controller.create_topics([NewTopic("u", 5000)])
            assert isinstance(plan, TopicPlan)

    asyncio.run(main())


async def bound(store: EmbeddedStore, pages: int) -> None:
    """SQLite takes no less than it has already."""
    await store._call(lambda: store._table._db.execute(f"PRAGMA max_page_count={pages}").fetchone())


def _error(outcome: object) -> ErrorCode | None:
    return outcome.error if isinstance(outcome, Refusal) else None


def test_a_controller_that_was_replaced_can_change_nothing() -> None:
    async def scenario(parts: Parts) -> None:
        await parts.store.set(layout.CONTROLLER_EPOCH, b"2")
        for _ in range(2):
            [refusal] = await parts.controller.create_topics([NewTopic("t")])
            assert _error(refusal) is ErrorCode.NOT_CONTROLLER
            assert not parts.controller.is_active
        assert await parts.store.get(layout.topic("t")) is None

    run(scenario)


def test_each_start_has_an_epoch_of_its_own(tmp_path: Path) -> None:
    async def main() -> None:
        for epoch in (b"1", b"2", b"3"):
            store = await EmbeddedStore.open(str(tmp_path / "m.sqlite"), ThreadPoolExecutor(1))
            async with running(store) as parts:
                node = await parts.store.get(layout.CONTROLLER_EPOCH)
                assert node is not None
                assert node.data == epoch
                assert parts.follower.image.controller_id == 1

    asyncio.run(main())


def test_ten_thousand_partitions_are_created_found_again_and_deleted(tmp_path: Path) -> None:
    async def main() -> None:
        path = str(tmp_path / "m.sqlite")
        async with running(await EmbeddedStore.open(path, ThreadPoolExecutor(1))) as parts:
            await parts.controller.create_topics([NewTopic("t", 9_999)])
            await parts.controller.create_partitions([AddedPartitions("t", 15_000)])
        async with running(await EmbeddedStore.open(path, ThreadPoolExecutor(1))) as parts:
            partitions = parts.follower.image.topics["t"].partitions
            assert len(partitions) == 15_000
            assert len({id(partition) for partition in partitions}) <= 2, "idle partitions share one state"
            await parts.controller.delete_topics([TopicToDelete("t")])
            assert parts.follower.image.topics == {}

    asyncio.run(main())


def test_no_claim_is_written_into_a_store_that_has_gone_back(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        ensemble = SimulatedEnsemble()
        snapshot = ensemble.snapshot()
        async with running(ensemble.connect()) as parts:
            await parts.controller.create_topics([NewTopic("t", 1)])
            ensemble.restore(snapshot)
            await until(lambda: "could not stand for the controller" in caplog.text)
            assert ensemble.get(layout.CONTROLLER) is None

    asyncio.run(main())


class Interrupting(SimulatedStore):
    """Something happens after a broker was seen to be away."""

    meanwhile: Callable[[], Awaitable[object]] | None = None

    async def get(self, path: str) -> Versioned | None:
        found = await super().get(path)
        if self.meanwhile is not None and path == layout.broker(NodeId(2)):
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
        return found


def test_a_broker_that_registers_again_meanwhile_is_not_forgotten() -> None:
    async def main() -> None:
        ensemble = SimulatedEnsemble()
        store = Interrupting(ensemble, "")
        async with running(store) as parts:
            gone, back = ensemble.connect(), ensemble.connect()
            await register(gone, registrant(2), 0)
            await gone.close()
            store.meanwhile = lambda: register(back, registrant(2), 0)
            refusal = await parts.controller.unregister_broker(2)
            assert refusal is not None
            assert await store.get(layout.registration(NodeId(2))) is not None
            ensemble.watch_delay_s = 1000
            await back.close()
            again = ensemble.connect()
            await register(again, registrant(2), 0)
            refusal = await parts.controller.unregister_broker(2)
            assert refusal is not None
            assert refusal.error is ErrorCode.INVALID_REQUEST

    asyncio.run(main())


@pytest.mark.parametrize("lost", ["lost_answers", "lost_requests"])
def test_after_a_write_of_unknown_outcome_the_controller_reads_again_before_it_decides(
    lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is lost, and so is the one to the question whether it was made."""
    ensemble = SimulatedEnsemble()
    store = ensemble.connect()
    questions = 2

    async def unreachable_at_first() -> None:
        nonlocal questions
        questions -= 1
        if questions >= 0:
            raise UnreachableError("The metadata store does not answer.")

    async def main() -> None:
        async with running(store) as parts:
            monkeypatch.setattr(store, "sync", unreachable_at_first)
            ensemble.watch_delay_s = 60.0  # Nor does the controller hear of the change by itself.
            setattr(ensemble, lost, 1)
            [first] = await parts.controller.create_topics([NewTopic("t")])
            assert isinstance(first, Refusal)
            assert first.error is ErrorCode.REQUEST_TIMED_OUT
            assert "not known whether" in (first.message or "")
            [still] = await parts.controller.create_topics([NewTopic("t")])
            assert isinstance(still, Refusal)
            assert still.error is ErrorCode.REQUEST_TIMED_OUT
            [again] = await parts.controller.create_topics([NewTopic("t")])
            if lost == "lost_answers":
                assert isinstance(again, Refusal)
                assert again.error is ErrorCode.TOPIC_ALREADY_EXISTS
            assert "t" in parts.follower.image.topics

    asyncio.run(main())
