"""The ZooKeeper store when servers of the ensemble are paused, killed, or have lost their data."""

import asyncio

import pytest

from riverlog.metadata import layout, payloads
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.outcomes import write_multi
from riverlog.metadata.zookeeper_store import ZooKeeperStore
from riverlog.model.metadata_store import SessionState, Set, WentBackError
from tests.zookeeper.behind_proxies import SHORT_S, open_at, run, states_of, until
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
