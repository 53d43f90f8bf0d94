"""The store that the processes of one host share: real processes, one of which is killed."""

import asyncio
import errno
import os
import signal
import sqlite3
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from riverlog.metadata.stores.shared import host, session_files
from riverlog.metadata.stores.shared.store import SharedStore
from riverlog.metadata.stores.shared.tree import FILE_NAME, SESSIONS, SharedTree
from riverlog.model.errors import ConfigError, DirectoryInUseError
from riverlog.model.metadata_store import (
    MetadataStore,
    SessionState,
    StoreWriteError,
    UnreachableError,
    WatchEvent,
)
from riverlog.node.processes.event_loop import loop_factory
from tests.processes import ROOT, Process

WAIT_S = 20.0


class Session(Process):
    """`tests.metadata.shared_session`, which has its session when this returns."""

    def __init__(self, directory: Path) -> None:
        command = [sys.executable, "-m", "tests.metadata.shared_session", str(directory)]
        super().__init__(command, cwd=ROOT, environment=dict(os.environ))
        self.expect_done()

    def tell(self, line: str) -> None:
        self.stdin.write(line.encode() + b"\n")
        self.stdin.flush()

    def expect_done(self) -> None:
        assert self.stdout.readline() == b"done\n", self.errors()


@asynccontextmanager
async def opened(directory: Path) -> AsyncIterator[SharedStore]:
    with ThreadPoolExecutor(1) as thread:
        store = await SharedStore.open(str(directory), thread)
        try:
            yield store
        finally:
            await store.close()


class Heard:
    """The changes that a watcher is told, and a way to wait for something to come of them."""

    def __init__(self, store: MetadataStore, path: str = "/") -> None:
        self.paths: list[str] = []
        self._news = asyncio.Event()
        store.watch(path, self._on_event)

    def _on_event(self, event: WatchEvent) -> None:
        self.paths.append(event.path)
        self._news.set()

    async def until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        """Only looks when told of a change, so that it also proves that one was told."""
        async with asyncio.timeout(WAIT_S):
            while not await condition():
                await self._news.wait()
                self._news.clear()


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await main()

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(bounded())


def test_the_ephemeral_nodes_of_a_process_that_is_killed_go_and_the_others_are_told(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as store:
            heard = Heard(store)
            await store.create("/ids")

            async def is_empty() -> bool:
                return await store.children("/ids") == []

            with Session(tmp_path) as dying, Session(tmp_path) as living:
                for each, path in ((dying, "/ids/1"), (living, "/ids/2")):
                    each.tell(f"hold {path}")
                    each.expect_done()

                async def are_both_here() -> bool:
                    return await store.children("/ids") == ["1", "2"]

                await heard.until(are_both_here)
                node = await store.get("/ids/1")
                assert node is not None
                assert not node.is_mine
                dying.kill()

                async def is_one_left() -> bool:
                    return await store.children("/ids") == ["2"]

                await heard.until(is_one_left)
                assert "/ids/1" in heard.paths
                living.stdin.close()
                assert living.wait() == 0
                await heard.until(is_empty)

    run(main)
    assert os.listdir(tmp_path / SESSIONS) == []


def test_what_a_killed_process_left_goes_when_the_store_is_next_opened(tmp_path: Path) -> None:
    with Session(tmp_path) as dying:
        dying.tell("hold /controller")
        dying.expect_done()
        dying.kill()

    async def main() -> None:
        async with opened(tmp_path) as store:
            assert await store.get("/controller") is None

    run(main)


def test_a_process_that_is_stopped_and_not_dead_keeps_its_session(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as store:
            with Session(tmp_path) as held:
                held.tell("hold /controller")
                held.expect_done()
                held.process.send_signal(signal.SIGSTOP)
                await store.sync()
                await store.create("/later")
                assert await store.get("/controller") is not None
                held.process.send_signal(signal.SIGCONT)

    run(main)


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as store:
            await store.create("/counter", b"0")
            with Session(tmp_path) as one, Session(tmp_path) as other:
                for each in (one, other):
                    each.tell("count /counter 40")
                for each in (one, other):
                    each.expect_done()
            node = await store.get("/counter")
            assert node is not None
            assert (node.data, node.version) == (b"80", 80)

    run(main)


def test_threads_of_one_process_have_sessions_of_their_own(tmp_path: Path) -> None:
    is_made, may_end = threading.Event(), threading.Event()

    async def hold() -> None:
        async with opened(tmp_path) as store:
            await store.create("/ids/1", ephemeral=True)
            is_made.set()
            await asyncio.to_thread(may_end.wait, WAIT_S)

    async def main() -> None:
        async with opened(tmp_path) as store:
            heard = Heard(store)
            thread = threading.Thread(target=lambda: run(hold))
            thread.start()
            await asyncio.to_thread(is_made.wait, WAIT_S)
            assert await store.children("/ids") == ["1"]
            may_end.set()

            async def is_gone() -> bool:
                return await store.children("/ids") == []

            await heard.until(is_gone)
            await asyncio.to_thread(thread.join)

    run(main)


def test_a_session_that_is_abandoned_ends_for_the_others(tmp_path: Path) -> None:
    def give_up() -> None:
        loop = asyncio.new_event_loop()
        with ThreadPoolExecutor(1) as thread:
            store = loop.run_until_complete(SharedStore.open(str(tmp_path), thread))
            loop.run_until_complete(store.create("/ids/1", ephemeral=True))
        store.abandon()
        assert store.session_state is SessionState.LOST
        loop.close()

    async def main() -> None:
        async with opened(tmp_path) as store:
            heard = Heard(store)
            await asyncio.to_thread(give_up)

            async def is_gone() -> bool:
                return await store.children("/ids") == []

            await heard.until(is_gone)
            assert "/ids/1" in heard.paths

    run(main)


def test_a_session_that_missed_too_many_changes_is_told_that_everything_may_have_changed(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with opened(tmp_path) as store:
            heard = Heard(store)
            await store.create("/a")
            with sqlite3.connect(tmp_path / FILE_NAME) as other:
                other.execute("DELETE FROM change")
                other.execute("INSERT INTO change VALUES (50, '[\"/b\"]')")
                other.execute("UPDATE transactions SET last = 50")
            other.close()
            await store.sync()
            assert heard.paths == ["/a", "/"]

    run(main)


def test_the_file_is_opened_by_one_after_the_other(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as openers:
        with session_files.alone(str(tmp_path)):
            opening = [openers.submit(SharedTree, str(tmp_path)) for _ in range(4)]
            assert not any(each.done() for each in opening)
            assert not (tmp_path / FILE_NAME).exists()
        trees = [each.result(WAIT_S) for each in opening]
        assert len({tree.own.number for tree in trees}) == 4
        for closing in [openers.submit(tree.close) for tree in trees]:
            closing.result(WAIT_S)


def test_sessions_of_another_host_are_refused_until_they_have_said_goodbye(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = SharedTree(str(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr("riverlog.metadata.stores.shared.tree.host_id", lambda: "another")
        with pytest.raises(DirectoryInUseError, match="in use by brokers of the host"):
            SharedTree(str(tmp_path))
    here.close()
    with monkeypatch.context() as patch:
        patch.setattr("riverlog.metadata.stores.shared.tree.host_id", lambda: "another")
        SharedTree(str(tmp_path)).close()


MOUNTS = """\
22 1 0:21 / / rw,relatime - ext4 /dev/vda rw
23 22 0:22 / /srv/of\\040all rw - nfs4 server:/x rw
24 22 0:23 / /srv rw - xfs /dev/vdb rw
"""


def test_a_file_system_of_several_machines_is_told_by_its_mount_point(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    kinds = [host.file_system_of(path, str(mounts)) for path in ("/srv/of all/data", "/srv/of", "/srvx")]
    assert kinds == ["nfs4", "xfs", "ext4"]
    assert host.file_system_of("/srv", str(tmp_path / "nothing")) is None


def test_a_directory_that_other_machines_may_share_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "file_system_of", lambda directory: "nfs4")
    with pytest.raises(ConfigError, match=r"nfs4.*zookeeper\.connect"):
        SharedTree(str(tmp_path))


class FailingOnce:
    """Stands before a function and raises the first time."""

    def __init__(self, work: Callable[..., object], error: Exception) -> None:
        self._work, self._error = work, error
        self.has_failed = False

    def __call__(self, *arguments: object) -> object:
        if not self.has_failed:
            self.has_failed = True
            raise self._error
        return self._work(*arguments)


@pytest.mark.parametrize("error", [StoreWriteError("locked"), sqlite3.OperationalError("disk I/O error")])
def test_a_write_that_was_made_is_not_told_as_failed_when_the_look_after_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    async def main() -> None:
        async with opened(tmp_path) as store:
            heard = Heard(store)
            failing = FailingOnce(store._tree.end_the_dead, error)
            monkeypatch.setattr(store._tree, "end_the_dead", failing)
            await store.create("/a", b"1")
            assert failing.has_failed

            async def is_told() -> bool:
                return "/a" in heard.paths

            await heard.until(is_told)

    run(main)


def test_a_write_stands_and_is_told_to_all_when_there_is_no_descriptor_to_ring_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with opened(tmp_path) as store, opened(tmp_path) as other:
            await store.sync()
            heard = Heard(other)
            failing = FailingOnce(session_files.ring, OSError(errno.EMFILE, "Too many open files"))
            monkeypatch.setattr(session_files, "ring", failing)
            assert await store.create("/a", b"1") == "/a"
            assert failing.has_failed

            async def is_told() -> bool:
                return "/a" in heard.paths

            await heard.until(is_told)

    run(main)


def test_a_session_that_cannot_look_for_want_of_descriptors_says_that_the_store_is_unreachable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who follows the metadata asks again for that, and gives up for anything that he does not know."""

    async def main() -> None:
        async with opened(tmp_path) as store, opened(tmp_path):
            with monkeypatch.context() as without:
                without.setattr(session_files, "is_alive", no_descriptor)
                with pytest.raises(UnreachableError, match="Too many open files"):
                    await store.sync()
            await store.sync()

    def no_descriptor(directory: str, number: int) -> bool:
        raise OSError(errno.EMFILE, "Too many open files")

    run(main)
