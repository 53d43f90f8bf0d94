"""The ZooKeeper store when answers are lost, connections cut, sessions ended, servers paused, data gone."""

import asyncio
import gc
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from kazoo.client import KazooClient

from riverlog.metadata import layout, payloads
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.outcomes import write_multi
from riverlog.metadata.stores.zookeeper_servers import ConnectString, parse_connect
from riverlog.metadata.stores.zookeeper_store import ZooKeeperStore
from riverlog.model.config.slices import ServerConfig
from riverlog.model.errors import ConfigError
from riverlog.model.metadata_store import (
    Check,
    Create,
    Operation,
    OutcomeUnknownError,
    SessionLostError,
    SessionState,
    Set,
    UnreachableError,
)
from riverlog.node.stores import open_configured_store
from tests.waiting import loop_turns, until
from tests.zookeeper.behind_proxies import LONG_S, SHORT_S, WAIT_S, open_at, run, states_of
from tests.zookeeper.ensemble import Ensemble
from tests.zookeeper.proxies import Proxies, proxies


def test_a_write_whose_answer_is_lost_is_of_unknown_outcome_and_the_session_goes_on(
    ensemble: Ensemble,
) -> None:
    async def scenario(store: ZooKeeperStore, between: Proxies, beside: ZooKeeperStore) -> None:
        await store.create("/mine", ephemeral=True)
        proxy = between.used
        proxy.swallows = True
        writing = asyncio.create_task(store.create("/a", b"x"))
        await until(lambda: proxy.swallowed)
        await beside.sync()
        assert await beside.get("/a") is not None
        proxy.swallows = False
        proxy.cut()
        with pytest.raises(OutcomeUnknownError):
            await writing
        node, mine = await store.get("/a"), await store.get("/mine")
        assert node is not None
        assert node.data == b"x"
        assert mine is not None
        assert mine.is_mine

    run(ensemble, scenario)


def test_a_multi_whose_answer_is_lost_is_carried_out_once(ensemble: Ensemble) -> None:
    async def scenario(store: ZooKeeperStore, between: Proxies, beside: ZooKeeperStore) -> None:
        await store.create("/count")
        for number in range(5):
            proxy = between.used
            proxy.swallows, proxy.swallowed = True, 0
            operations: list[Operation] = [Check("/count"), Create(f"/n{number}"), Set("/count", b"")]
            writing = asyncio.create_task(write_multi(store, operations))
            await until(lambda: between.used.swallowed)
            proxy.swallows = False
            proxy.cut()
            await writing
            node = await store.get("/count")
            assert node is not None
            assert node.version == number + 1

    run(ensemble, scenario)


def test_a_session_goes_on_at_another_server_and_what_was_missed_is_read(ensemble: Ensemble) -> None:
    async def scenario(store: ZooKeeperStore, between: Proxies, beside: ZooKeeperStore) -> None:
        await store.create("/mine", ephemeral=True)
        await store.create(layout.TOPIC_CONFIGS)
        follower, states = MetadataFollower(store), states_of(store)
        await follower.start()
        first = between.used
        between.shut()
        await until(lambda: store.session_state is SessionState.SUSPENDED)
        await beside.create(f"{layout.TOPIC_CONFIGS}/t", payloads.encode_config({"a": "b"}))
        between.open()
        first.is_open = False
        await until(lambda: follower.image.topic_config("t"))
        assert between.used is not first
        assert states == [SessionState.SUSPENDED, SessionState.CONNECTED]
        mine = await store.get("/mine")
        assert mine is not None
        assert mine.is_mine
        await follower.close()

    run(ensemble, scenario)


def test_a_broker_that_is_cut_off_knows_when_its_session_is_over_and_gets_a_new_one(
    ensemble: Ensemble,
) -> None:
    async def scenario(store: ZooKeeperStore, between: Proxies, beside: ZooKeeperStore) -> None:
        await store.create("/mine", ephemeral=True)
        await store.create(layout.TOPIC_CONFIGS)
        follower, states = MetadataFollower(store), states_of(store)
        await follower.start()
        between.shut()
        await until(lambda: store.session_state is SessionState.LOST)
        assert store.lease_until_s < asyncio.get_running_loop().time()
        with pytest.raises(UnreachableError):
            await store.get("/mine")
        gone = asyncio.Event()
        beside.watch("/mine", lambda event: gone.set())
        while await beside.get("/mine") is not None:
            await asyncio.wait_for(gone.wait(), WAIT_S)
        await beside.create(f"{layout.TOPIC_CONFIGS}/t", payloads.encode_config({"a": "b"}))
        between.open()
        await until(lambda: follower.image.topic_config("t"))
        assert states == [SessionState.SUSPENDED, SessionState.LOST, SessionState.CONNECTED]
        assert await store.get("/mine") is None
        await store.create("/mine", ephemeral=True)
        await follower.close()

    run(ensemble, scenario, session_s=SHORT_S)


def test_a_session_that_the_ensemble_has_ended_is_followed_by_a_new_one(ensemble: Ensemble) -> None:
    async def scenario(store: ZooKeeperStore, between: Proxies, beside: ZooKeeperStore) -> None:
        await store.create("/mine", ephemeral=True)
        states = states_of(store)
        session = store._session
        # A second client under the same session ends it, as the ensemble would.
        twin = KazooClient(ensemble.servers, client_id=session._client.client_id, timeout=LONG_S)
        await asyncio.to_thread(twin.start)
        await asyncio.to_thread(twin.stop)
        twin.close()
        await until(lambda: store._session is not session and store.session_state is SessionState.CONNECTED)
        assert SessionState.LOST in states
        assert await store.get("/mine") is None

    run(ensemble, scenario)


def test_a_heartbeat_that_finds_its_session_ended_says_nothing(
    ensemble: Ensemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(store: ZooKeeperStore, between: Proxies, beside: ZooKeeperStore) -> None:
        asked = 0

        async def read(path: str) -> None:
            nonlocal asked
            asked += 1
            raise SessionLostError("ended")

        complaints: list[dict[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        monkeypatch.setattr(store._session, "read", read)
        await until(lambda: asked > 1)
        monkeypatch.undo()
        gc.collect()
        await loop_turns()
        assert complaints == []

    run(ensemble, scenario, session_s=SHORT_S)


def test_a_broker_that_starts_before_zookeeper_waits_and_says_so(
    ensemble: Ensemble, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with proxies(ensemble.addresses) as between:
            server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
            nobody = server.sockets[0].getsockname()[1]
            server.close()
            await server.wait_closed()
            opening = asyncio.create_task(open_at(f"127.0.0.1:{nobody}", "/early", wait_s=None))
            await until(lambda: f"Nobody answers at 127.0.0.1:{nobody}" in caplog.text)
            assert not opening.done()
            opening.cancel()
            await asyncio.wait([opening])
            between.shut()
            opening = asyncio.create_task(
                open_at(f"127.0.0.1:{nobody},{between.servers}", "/early", wait_s=None)
            )
            await until(lambda: f"127.0.0.1:{between.all[0].port} (Connection" in caplog.text)
            assert not opening.done()
            between.open()
            await (await opening).close()

    asyncio.run(main())


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_a_port_that_is_not_zookeeper_is_refused_with_its_name(answer: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4)
        writer.write(answer)
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(UnreachableError, match=f"127.0.0.1:{port} is not ZooKeeper"):
            await open_at(f"127.0.0.1:{port}", "", wait_s=None)
        server.close()

    asyncio.run(main())


def test_an_ensemble_that_does_not_come_in_time_is_an_error() -> None:
    async def main() -> None:
        server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        with pytest.raises(UnreachableError, match=f"Nobody answers at 127.0.0.1:{port}"):
            await open_at(f"127.0.0.1:{port}", "", wait_s=0.1)

    asyncio.run(main())


def test_without_kazoo_the_package_to_install_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.partition(".")[0] == "kazoo"]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("kazoo_session", "zookeeper_store"):
        monkeypatch.delitem(sys.modules, f"riverlog.metadata.stores.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "kazoo", None)
    config = ServerConfig(zookeeper_connect="127.0.0.1:1")
    with pytest.raises(ConfigError, match=r"pip install 'riverlog\[zookeeper\]'"):
        asyncio.run(open_configured_store(config, "", ThreadPoolExecutor(1)))


@pytest.mark.parametrize(
    ("text", "servers", "chroot"),
    [
        ("a:1", "a:1", ""),
        ("a", "a:2181", ""),
        ("a:1, b:2/x/y/", "a:1,b:2", "/x/y"),
        ("[::1]:5/x", "[::1]:5", "/x"),
    ],
)
def test_a_connect_string_is_servers_and_a_path(text: str, servers: str, chroot: str) -> None:
    assert parse_connect(text) == ConnectString(servers, chroot)


@pytest.mark.parametrize("text", ["", "/x", "a:1,", "a:x", ":1", "a:1//x"])
def test_a_connect_string_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"zookeeper\.connect"):
        parse_connect(text)
