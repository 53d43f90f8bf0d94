"""What every metadata store must do. The same suite runs on each of them."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

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
    TooLargeError,
    WatchEvent,
    bytes_of,
)
from tests.metadata.stores import SHARED, STORES, OpenStore, Reopen


@pytest.fixture(params=STORES)
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> OpenStore:
    """A context manager of a store, and of a way to open the same one again after it was closed."""
    return STORES[request.param](tmp_path)


@pytest.fixture(params=SHARED)
def open_shared(request: pytest.FixtureRequest, tmp_path: Path) -> OpenStore:
    """The same, of a store that several sessions use at a time."""
    return STORES[request.param](tmp_path)


async def content(store: MetadataStore, path: str) -> tuple[bytes, int] | None:
    node = await store.get(path)
    return None if node is None else (node.data, node.version)


Scenario = Callable[[MetadataStore, Reopen], Awaitable[None]]


def run(open_store: OpenStore, scenario: Scenario) -> None:
    async def main() -> None:
        async with open_store() as (store, reopen):
            await scenario(store, reopen)

    asyncio.run(main())


def test_a_created_node_is_read_back_with_version_0(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        assert await store.create("/a", b"x") == "/a"
        assert await content(store, "/a") == (b"x", 0)

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
        assert await content(store, "/a/b") == (b"", 0)
        assert await store.children("/a") == ["b"]

    run(open_store, scenario)


def test_creating_what_exists_is_refused(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        await store.create("/a", b"x")
        with pytest.raises(NodeExistsError):
            await store.create("/a", b"y")
        assert await content(store, "/a") == (b"x", 0)

    run(open_store, scenario)


def test_each_set_raises_the_version(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        await store.create("/a")
        assert await store.set("/a", b"1") == 1
        assert await store.set("/a", b"2", expected_version=1) == 2
        with pytest.raises(BadVersionError):
            await store.set("/a", b"3", expected_version=1)
        assert await content(store, "/a") == (b"2", 2)

    run(open_store, scenario)


def test_a_node_that_was_deleted_and_made_again_starts_at_version_0(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        await store.create("/a")
        await store.set("/a", b"1")
        await store.delete("/a", expected_version=1)
        await store.create("/a")
        assert await content(store, "/a") == (b"", 0)

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


def test_a_tree_of_topics_has_every_partition_with_its_state_or_without(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        paths = ["/brokers", "/brokers/topics"]
        for name in ("orders", "partitions"):
            paths += (f"/brokers/topics/{name}", f"/brokers/topics/{name}/partitions")
            paths += (f"/brokers/topics/{name}/partitions/{index}" for index in range(3))
            paths += (f"/brokers/topics/{name}/partitions/{index}/state" for index in (0, 2))
        for path in paths:
            await store.create(path, path.encode())
        tree = await store.tree("/brokers/topics")
        assert {path: node.data for path, node in tree.items()} == {
            path: path.encode() for path in paths if path != "/brokers"
        }

    run(open_store, scenario)


def test_nodes_are_read_together_whose_names_are_longer_than_a_request_can_be(open_store: OpenStore) -> None:
    """Groups and subscriptions to metrics have names of any length, and settings under them."""

    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        paths = [f"/config/{number:02d}{'x' * 30_000}" for number in range(40)]
        for path in paths:
            await store.create(path, path[:10].encode())
        assert set(await store.tree("/config")) == {"/config", *paths}
        nodes = await asyncio.gather(*map(store.get, paths))
        assert [node is not None and node.data for node in nodes] == [path[:10].encode() for path in paths]

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
        assert (await store.tree("/a-b"))["/a-b/x"][:2] == (b"/a-b/x", 0)

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
        assert await content(store, "/a") == (b"old", 0)
        assert await store.get("/b") is None

    run(open_store, scenario)


def test_a_multi_sees_its_own_earlier_operations(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        await store.multi([Create("/a"), Create("/a/b", b"x"), Set("/a/b", b"y", 0), Check("/a/b", 1)])
        assert await content(store, "/a/b") == (b"y", 1)
        await store.multi([Delete("/a/b"), Delete("/a"), Create("/a", b"again")])
        assert await content(store, "/a") == (b"again", 0)

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
        assert await content(again, "/ids") == (b"", 0)

    run(open_store, scenario)


def test_what_was_written_is_there_in_the_next_session(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        await store.create("/a/b", b"x")
        await store.set("/a/b", b"y")
        await store.close()
        again = await reopen()
        assert await content(again, "/a/b") == (b"y", 1)

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


def test_transactions_are_numbered_upwards_also_over_sessions(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        await store.create("/a")
        made = await store.get("/a")
        assert made is not None
        assert made.created == made.modified > 0
        await store.create("/b")
        await store.set("/a", b"x")
        changed, other = await store.get("/a"), (await store.tree("/b"))["/b"]
        assert changed is not None
        assert changed.created == made.created < other.created < changed.modified
        await store.close()
        again = await reopen()
        assert await again.get("/a") == changed
        await again.create("/c")
        assert (await again.tree("/c"))["/c"].created > changed.modified

    run(open_store, scenario)


def test_what_one_multi_writes_has_one_transaction(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        await store.create("/a")
        await store.multi([Set("/a", b"x"), Create("/b"), Create("/b/c")])
        tree = await store.tree("/")
        assert tree["/a"].modified == tree["/b"].created == tree["/b/c"].modified
        assert tree["/a"].created < tree["/a"].modified

    run(open_store, scenario)


def test_an_ephemeral_node_is_known_as_ones_own(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        await store.create("/ids/1", ephemeral=True)
        await store.create("/ids/2")
        tree = await store.tree("/ids")
        assert [tree[path].is_mine for path in ("/ids", "/ids/1", "/ids/2")] == [False, True, False]

    run(open_store, scenario)


def test_an_ephemeral_node_of_another_session_is_not_ones_own(open_shared: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        other = await reopen()
        await other.create("/ids/1", ephemeral=True)
        await store.sync()
        node = await store.get("/ids/1")
        assert node is not None
        assert not node.is_mine
        await other.close()
        await store.sync()
        assert await store.get("/ids/1") is None

    run(open_shared, scenario)


def test_after_a_sync_a_session_reads_what_another_wrote_before(open_shared: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        other = await reopen()
        for number in range(10):
            await store.create(f"/n{number}")
            await other.sync()
            assert await content(other, f"/n{number}") == (b"", 0)

    run(open_shared, scenario)


def test_a_watcher_hears_of_what_another_session_writes(open_shared: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        other, heard, events = await reopen(), asyncio.Event(), list[str]()

        def hear(event: WatchEvent) -> None:
            events.append(event.path)
            if event.path == "/a/b":
                heard.set()

        await store.create("/a")
        store.watch("/a", hear)
        await other.create("/ab")
        await other.multi([Create("/a/b"), Set("/a/b", b"x")])
        await asyncio.wait_for(heard.wait(), 10)
        assert "/ab" not in events

    run(open_shared, scenario)


def test_a_check_without_a_version_asks_only_whether_the_node_is_there(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        await store.create("/a")
        await store.set("/a", b"x")
        await store.multi([Check("/a"), Create("/b")])
        with pytest.raises(NoNodeError):
            await store.multi([Check("/nothing"), Create("/c")])
        assert await store.children("/") == ["a", "b"]

    run(open_store, scenario)


def test_the_lease_lasts_while_the_session_does(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        await store.sync()
        now_s = asyncio.get_running_loop().time()
        assert store.lease_until_s > now_s
        await store.close()
        assert store.lease_until_s < now_s

    run(open_store, scenario)


def test_a_write_that_is_too_large_is_refused_and_the_session_goes_on(open_store: OpenStore) -> None:
    async def scenario(store: MetadataStore, reopen: Reopen) -> None:
        if store.multi_bytes_max > 2**30:
            return  # It takes all that memory does.
        large = [Create(f"/{number}", bytes(100_000)) for number in range(11)]
        with pytest.raises(TooLargeError):
            await store.multi(large)
        assert await store.children("/") == []
        fitting = large[:9]
        assert bytes_of(fitting) < store.multi_bytes_max
        await store.multi(fitting)
        assert len(await store.children("/")) == 9

    run(open_store, scenario)
