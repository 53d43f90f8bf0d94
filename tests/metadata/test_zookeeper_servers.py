"""The ZooKeeper store when servers of the ensemble are paused, killed, or have lost their data."""

import asyncio
from pathlib import Path

import pytest

from riverlog.metadata import layout, payloads
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.outcomes import write_multi
from riverlog.metadata.stores.zookeeper_store import ZooKeeperStore
from riverlog.model.metadata_store import SessionState, Set, WentBackError
from tests.cli.running import CommandLine
from tests.processes import ServedProcess
from tests.waiting import eventually, until
from tests.zookeeper.behind_proxies import SHORT_S, open_at, run, states_of
from tests.zookeeper.ensemble import Ensemble
from tests.zookeeper.proxies import Proxies


def test_a_paused_server_is_left_for_another(ensemble: Ensemble) -> None:
    async def scenario(store: ZooKeeperStore, between: Proxies, beside: ZooKeeperStore) -> None:
        await store.create("/mine", ephemeral=True)
        number, states = between.all.index(between.used), states_of(store)
        ensemble.pause(number)
        try:
            await until(lambda: SessionState.CONNECTED in states)
            mine = await store.get("/mine")
            if SessionState.LOST in states:
                assert mine is None or not mine.is_mine
            else:
                assert mine is not None
                assert mine.is_mine
            await store.create("/again", ephemeral=True)
        finally:
            ensemble.resume(number)
            await asyncio.to_thread(ensemble.wait_for, number)

    run(ensemble, scenario, session_s=6.0)


def test_servers_that_are_killed_one_after_the_other_lose_nothing(ensemble: Ensemble) -> None:
    async def scenario(store: ZooKeeperStore, between: Proxies, beside: ZooKeeperStore) -> None:
        await store.create("/count")
        for number in ensemble.numbers:
            await asyncio.to_thread(ensemble.kill, number)
            node = await store.get("/count")
            assert node is not None
            await write_multi(store, [Set("/count", b"", node.version)])
            await asyncio.to_thread(ensemble.start, number)
        node = await store.get("/count")
        assert node is not None
        assert node.version == len(ensemble.numbers)

    run(ensemble, scenario)


def test_an_ensemble_that_has_lost_its_data_is_not_followed(ensemble: Ensemble) -> None:
    async def main() -> None:
        store = await open_at(ensemble.servers, "/wiped", session_s=SHORT_S)
        await store.create(f"{layout.TOPIC_CONFIGS}/t", payloads.encode_config({"a": "b"}))
        for _ in range(5):
            await store.set(f"{layout.TOPIC_CONFIGS}/t", payloads.encode_config({"a": "b"}))
        follower, states = MetadataFollower(store), states_of(store)
        await follower.start()
        await asyncio.to_thread(ensemble.kill)
        ensemble.wipe()
        await asyncio.to_thread(ensemble.start)
        await until(lambda: SessionState.LOST in states and store.session_state is SessionState.CONNECTED)
        with pytest.raises(WentBackError, match="lost data or was restored"):
            await store.sync()
        assert follower.image.topic_config("t") == {"a": "b"}
        await follower.close()
        await store.close()

    asyncio.run(main())


def test_brokers_go_on_without_zookeeper_and_take_orders_again_when_it_is_back(
    ensemble: Ensemble, tmp_path: Path
) -> None:
    settings = [
        f"zookeeper.connect={ensemble.servers}/outage",
        "zookeeper.session.timeout.ms=4000",
        "offsets.topic.replication.factor=1",
    ]
    with (
        ServedProcess(tmp_path / "a", *settings, "broker.id=1") as first,
        ServedProcess(tmp_path / "b", *settings, "broker.id=2") as second,
    ):
        riverlog = CommandLine(second.bootstrap_servers)
        topic = riverlog.topic("--partitions", "4")
        riverlog.produce(topic, *map(str, range(10)))
        ensemble.kill()
        eventually(lambda: "is lost" in first.errors() and "is lost" in second.errors(), "session kept", 60)
        riverlog.produce(topic, *map(str, range(10, 20)))
        assert sorted(map(int, riverlog.consume(topic).stdout.split())) == list(range(20))
        ensemble.start()
        eventually(lambda: "registered with epoch 1" in first.errors(), "not registered", 60)
        eventually(lambda: "registered with epoch 1" in second.errors(), "not registered", 60)
        after = riverlog.topic("--partitions", "2")
        riverlog.produce(after, "made after the outage")
        riverlog.produce(topic, *map(str, range(20, 30)))
        assert second.stop() == 0
        assert first.stop() == 0
    with (
        ServedProcess(tmp_path / "a", *settings, "broker.id=1"),
        ServedProcess(tmp_path / "b", *settings, "broker.id=2") as again,
    ):
        riverlog = CommandLine(again.bootstrap_servers)
        assert sorted(map(int, riverlog.consume(topic).stdout.split())) == list(range(30))
