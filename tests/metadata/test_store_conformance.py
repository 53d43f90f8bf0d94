"""What every metadata store must do. The same suite runs on each of them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from riverlog.metadata.embedded_store import EmbeddedStore
from riverlog.model.metadata_store import (
    BadVersionError,
    Check,
    Create,
    Delete,
    MetadataStore,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    SessionLostError,
    SessionState,
    Set,
    Versioned,
    WatchEvent,
)
from riverlog.testing.simulated_store import SimulatedEnsemble

Reopen = Callable[[], Awaitable[MetadataStore]]
Opened = AbstractAsyncContextManager[tuple[MetadataStore, Reopen]]
OpenStore = Callable[[], Opened]


@pytest.fixture(params=["embedded", "simulated"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> OpenStore:
    """A context manager of a store, and of a way to open the same one again after it was closed."""

    @asynccontextmanager
    async def embedded() -> AsyncIterator[tuple[MetadataStore, Reopen]]:
        opened = [await EmbeddedStore.open(str(tmp_path / "metadata.sqlite"), ThreadPoolExecutor(1))]

        async def reopen() -> MetadataStore:
            opened.append(await EmbeddedStore.open(str(tmp_path / "metadata.sqlite"), ThreadPoolExecutor(1)))
            return opened[-1]

        try:
            yield opened[0], reopen
        finally:
            for store in opened:
                await store.close()

    @asynccontextmanager
    async def simulated() -> AsyncIterator[tuple[MetadataStore, Reopen]]:
        ensemble = SimulatedEnsemble()

        async def reopen() -> MetadataStore:
            return ensemble.connect()

        yield ensemble.connect(), reopen

    return embedded if request.param == "embedded" else simulated


Scenario = Callable[[MetadataStore, Reopen], Awaitable[None]]


def run(open_store: OpenStore, scenario: Scenario) -> None:
    async def main() -> None:
        async with open_store() as (store, reopen):
            await scenario(store, reopen)

    asyncio.run(main())


def test_a_created_node_is_read_back_with_version_0(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        assert await store.create("/a", b"x") == "/a"
        assert await store.get("/a") == Versioned(b"x", 0)

    run(open_store, scenario)


def test_a_node_that_is_not_there_reads_as_none_and_has_no_children(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        assert await store.get("/nothing") is None
        assert await store.children("/nothing") == []
        assert await store.tree("/nothing") == {}

    run(open_store, scenario)


def test_creating_makes_the_parents_that_are_missing(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        await store.create("/a/b/c", b"x")
        assert await store.get("/a/b") == Versioned(b"", 0)
        assert await store.children("/a") == ["b"]

    run(open_store, scenario)


def test_creating_what_exists_is_refused(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        await store.create("/a", b"x")
        with pytest.raises(NodeExistsError):
            await store.create("/a", b"y")
        assert await store.get("/a") == Versioned(b"x", 0)

    run(open_store, scenario)


def test_each_set_raises_the_version(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        await store.create("/a")
        assert await store.set("/a", b"1") == 1
        assert await store.set("/a", b"2", expected_version=1) == 2
        with pytest.raises(BadVersionError):
            await store.set("/a", b"3", expected_version=1)
        assert await store.get("/a") == Versioned(b"2", 2)

    run(open_store, scenario)


def test_a_node_that_was_deleted_and_made_again_starts_at_version_0(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        await store.create("/a")
        await store.set("/a", b"1")
        await store.delete("/a", expected_version=1)
        await store.create("/a")
        assert await store.get("/a") == Versioned(b"", 0)

    run(open_store, scenario)


def test_setting_and_deleting_what_is_not_there_is_refused(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        with pytest.raises(NoNodeError):
            await store.set("/a", b"1")
        with pytest.raises(NoNodeError):
            await store.delete("/a")

    run(open_store, scenario)


def test_deleting_checks_the_version_and_the_children(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        await store.create("/a/b")
        with pytest.raises(NotEmptyError):
            await store.delete("/a")
        with pytest.raises(BadVersionError):
            await store.delete("/a/b", expected_version=7)
        await store.delete("/a/b", expected_version=0)
        await store.delete("/a")
        assert await store.get("/a") is None

    run(open_store, scenario)


def test_children_are_sorted_and_only_one_level_deep(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        for path in ("/a/c", "/a/b/x", "/a/10", "/a/9", "/ab"):
            await store.create(path)
        assert await store.children("/a") == ["10", "9", "b", "c"]
        assert await store.children("/") == ["a", "ab"]

    run(open_store, scenario)


def test_a_tree_is_the_node_and_all_below_and_no_sibling_with_the_same_beginning(
    open_store: OpenStore,
) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        for path in ("/a/b/c", "/a-b/x", "/a.b", "/a0", "/ab"):
            await store.create(path, path.encode())
        assert set(await store.tree("/a")) == {"/a", "/a/b", "/a/b/c"}
        assert set(await store.tree("/")) == {
            *("/", "/a", "/a/b", "/a/b/c", "/a-b", "/a-b/x", "/a.b", "/a0", "/ab")
        }
        assert (await store.tree("/a-b"))["/a-b/x"] == Versioned(b"/a-b/x", 0)

    run(open_store, scenario)


def test_sequential_nodes_are_numbered_upwards_even_after_deletions(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        first = await store.create("/q/n-", sequential=True)
        second = await store.create("/q/n-", sequential=True)
        await store.delete(second)
        third = await store.create("/q/n-", sequential=True)
        assert first < second < third
        assert first.startswith("/q/n-")
        assert len(first) == len("/q/n-") + 10

    run(open_store, scenario)


def test_a_multi_is_all_or_nothing(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        await store.create("/a", b"old")
        with pytest.raises(BadVersionError):
            await store.multi([Create("/b"), Set("/a", b"new"), Delete("/a", 0)])
        with pytest.raises(NodeExistsError):
            await store.multi([Set("/a", b"new"), Create("/b"), Create("/b")])
        assert await store.get("/a") == Versioned(b"old", 0)
        assert await store.get("/b") is None

    run(open_store, scenario)


def test_a_multi_sees_its_own_earlier_operations(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        await store.multi([Create("/a"), Create("/a/b", b"x"), Set("/a/b", b"y", 0), Check("/a/b", 1)])
        assert await store.get("/a/b") == Versioned(b"y", 1)
        await store.multi([Delete("/a/b"), Delete("/a"), Create("/a", b"again")])
        assert await store.get("/a") == Versioned(b"again", 0)

    run(open_store, scenario)


def test_a_multi_makes_no_parents(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        with pytest.raises(NoNodeError):
            await store.multi([Create("/a/b")])
        with pytest.raises(NoNodeError):
            await store.multi([Create("/a"), Delete("/a"), Create("/a/b")])

    run(open_store, scenario)


def test_a_failed_check_stops_the_whole_multi(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        await store.create("/epoch", b"1")
        await store.set("/epoch", b"2")
        with pytest.raises(BadVersionError):
            await store.multi([Check("/epoch", 0), Create("/a")])
        with pytest.raises(NoNodeError):
            await store.multi([Create("/a"), Check("/nothing", 0)])
        assert await store.get("/a") is None

    run(open_store, scenario)


def test_ephemeral_nodes_end_with_the_session_and_the_others_stay(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        await store.create("/ids/1", b"x", ephemeral=True)
        await store.multi([Create("/controller", b"1", ephemeral=True)])
        await store.close()
        again = await reopen()
        assert await again.children("/ids") == []
        assert await again.get("/controller") is None
        assert await again.get("/ids") == Versioned(b"", 0)

    run(open_store, scenario)


def test_what_was_written_is_there_in_the_next_session(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        await store.create("/a/b", b"x")
        await store.set("/a/b", b"y")
        await store.close()
        again = await reopen()
        assert await again.get("/a/b") == Versioned(b"y", 1)

    run(open_store, scenario)


def test_after_its_end_a_session_refuses_everything_and_says_so(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        states: list[SessionState] = []
        store.watch_session(states.append)
        seen = [store.session_state]
        await store.close()
        seen.append(store.session_state)
        assert seen == [SessionState.CONNECTED, SessionState.LOST]
        assert states == [SessionState.LOST]
        with pytest.raises(SessionLostError):
            await store.get("/")
        with pytest.raises(SessionLostError):
            await store.create("/a")

    run(open_store, scenario)


def test_a_watcher_hears_of_changes_at_and_below_its_path_until_it_stops(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        await store.create("/a/b")
        events: list[WatchEvent] = []
        watching = store.watch("/a", events.append)
        await store.set("/a/b", b"x")
        await store.create("/ab")
        await store.create("/a/c")
        await store.delete("/a/c")
        await store.set("/a", b"y")
        assert [event.path for event in events] == ["/a/b", "/a/c", "/a/c", "/a"]
        watching.stop()
        await store.set("/a", b"z")
        assert len(events) == 4

    run(open_store, scenario)


def test_a_watcher_of_the_root_hears_of_everything_and_not_of_what_failed(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        events: list[WatchEvent] = []
        store.watch("/", events.append)
        await store.create("/a")
        with pytest.raises(NodeExistsError):
            await store.multi([Create("/b"), Create("/a")])
        assert events == [WatchEvent("/a")]

    run(open_store, scenario)


def test_one_commit_is_told_by_its_topmost_paths_in_one_go(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        events: list[WatchEvent] = []
        below: list[WatchEvent] = []
        store.watch("/", events.append)
        store.watch("/t/partitions/0", below.append)
        await store.multi([Create("/t"), Create("/t/partitions"), Create("/t/partitions/0"), Create("/t-1")])
        assert {event.path for event in events} == {"/t", "/t-1"}
        assert below == [WatchEvent("/t/partitions/0")]

    run(open_store, scenario)


def test_a_watcher_is_told_before_the_writer_goes_on(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        order: list[str] = []
        store.watch("/", lambda event: order.append("watcher"))
        await store.create("/a")
        order.append("writer")
        assert order == ["watcher", "writer"]

    run(open_store, scenario)


def test_concurrent_sets_with_the_same_expectation_let_one_win(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        await store.create("/a")
        outcomes = await asyncio.gather(
            *(store.set("/a", bytes([n]), expected_version=0) for n in range(8)), return_exceptions=True
        )
        assert sum(outcome == 1 for outcome in outcomes) == 1
        assert sum(isinstance(outcome, BadVersionError) for outcome in outcomes) == 7

    run(open_store, scenario)
