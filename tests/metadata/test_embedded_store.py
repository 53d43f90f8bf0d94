"""What only the embedded store has: a file, its format, and crashes."""

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from riverlog.metadata.stores.embedded_store import EmbeddedStore
from riverlog.metadata.stores.node_rows import FORMAT_VERSION
from riverlog.metadata.stores.node_table import NodeTable
from riverlog.model.errors import DirectoryInUseError, FormatError
from riverlog.model.metadata_store import Create, Operation, StoreError, Versioned


def test_a_newer_format_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite"
    asyncio.run(_create(path))
    with sqlite3.connect(path) as database:
        database.execute("UPDATE format SET version = ?", (FORMAT_VERSION + 1,))
    database.close()
    with pytest.raises(
        FormatError, match=f"format {FORMAT_VERSION + 1}; this release knows {FORMAT_VERSION}"
    ):
        asyncio.run(_create(path))
    database = sqlite3.connect(path)
    assert database.execute("SELECT name FROM node WHERE parent = '/'").fetchall() == [("a",)]
    database.close()


def test_a_file_of_the_first_format_is_upgraded_with_all_that_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite"
    asyncio.run(_create(path))
    with sqlite3.connect(path) as database:
        for statement in (
            "ALTER TABLE node DROP COLUMN created",
            "ALTER TABLE node DROP COLUMN modified",
            "DROP TABLE transactions",
            "UPDATE format SET version = 1",
        ):
            database.execute(statement)
    database.close()

    async def main() -> None:
        store = await EmbeddedStore.open(str(path), ThreadPoolExecutor(1))
        assert await store.get("/a") == Versioned(b"x", 0)
        assert await store.set("/a", b"y") == 1
        assert await store.get("/a") == Versioned(b"y", 1, 0, 1)
        await store.close()

    asyncio.run(main())


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite"
    path.write_bytes(b"not a database at all, but long enough to be looked at" * 100)
    with pytest.raises(FormatError, match="not a usable metadata database"):
        asyncio.run(_create(path))


def test_a_file_that_another_store_has_open_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        store = await EmbeddedStore.open(str(tmp_path / "m.sqlite"), ThreadPoolExecutor(1))
        with pytest.raises(DirectoryInUseError, match="in use by another process"):
            await EmbeddedStore.open(str(tmp_path / "m.sqlite"), ThreadPoolExecutor(1))
        await store.create("/still-usable")
        await store.close()

    asyncio.run(main())


async def _create(path: Path) -> None:
    store = await EmbeddedStore.open(str(path), ThreadPoolExecutor(1))
    await store.create("/a", b"x")
    await store.close()


def test_a_writer_that_is_cancelled_while_it_writes_is_still_heard_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_writing, may_go_on = threading.Event(), threading.Event()
    apply = NodeTable.apply

    def slow_apply(self: NodeTable, operations: Sequence[Operation]) -> list[str]:
        is_writing.set()
        assert may_go_on.wait(10)
        return apply(self, operations)

    async def main() -> None:
        store = await EmbeddedStore.open(str(tmp_path / "m.sqlite"), ThreadPoolExecutor(1))
        heard = asyncio.Event()
        store.watch("/", lambda event: heard.set())
        monkeypatch.setattr(NodeTable, "apply", slow_apply)
        writer = asyncio.create_task(store.create("/a"))
        assert await asyncio.to_thread(is_writing.wait, 10)
        writer.cancel()
        await asyncio.wait([writer])
        may_go_on.set()
        await asyncio.wait_for(heard.wait(), 10)
        assert (await store.get("/a") or ())[:2] == (b"", 0)
        await store.close()

    asyncio.run(main())


def test_a_failed_write_is_a_store_error_and_leaves_the_store_usable(tmp_path: Path) -> None:
    async def main() -> None:
        store = await EmbeddedStore.open(str(tmp_path / "m.sqlite"), ThreadPoolExecutor(1))
        await store._call(lambda: store._table._db.execute("PRAGMA max_page_count=8").fetchone())
        with pytest.raises(StoreError, match="could not be written"):
            await store.create("/big", b"x" * 100_000)
        assert await store.get("/big") is None
        await store.create("/small", b"x")
        await store.close()

    asyncio.run(main())


_WRITER = """
import asyncio, sys
from concurrent.futures import ThreadPoolExecutor
from riverlog.metadata.stores.embedded_store import EmbeddedStore
from riverlog.model.metadata_store import Create

async def main():
    store = await EmbeddedStore.open(sys.argv[1], ThreadPoolExecutor(1))
    await store.create("/ids/1", ephemeral=True)
    for n in range(100_000):
        await store.multi([Create(f"/a{n}"), Create(f"/b{n}")])
        print(n, flush=True)

asyncio.run(main())
"""


def test_after_kill_9_every_acknowledged_write_is_there_whole_and_no_ephemeral_node(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite"
    writer = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": "src"},
    )
    assert writer.stdout is not None
    acknowledged = 0
    for line in writer.stdout:
        acknowledged = int(line)
        if acknowledged >= 20:
            break
    writer.kill()
    acknowledged = max([acknowledged, *map(int, writer.stdout.read().split())])
    writer.stdout.close()
    writer.wait()

    async def main() -> None:
        store = await EmbeddedStore.open(str(path), ThreadPoolExecutor(1))
        names = set(await store.children("/"))
        for n in range(acknowledged + 1):
            assert {f"a{n}", f"b{n}"} <= names
        assert {name[1:] for name in names if name[0] == "a"} == {
            name[1:] for name in names if name[0] == "b"
        }
        assert await store.children("/ids") == []
        await store.close()

    asyncio.run(main())


def test_twenty_thousand_nodes_in_one_multi_are_read_back(tmp_path: Path) -> None:
    async def main() -> None:
        store = await EmbeddedStore.open(str(tmp_path / "m.sqlite"), ThreadPoolExecutor(1))
        await store.multi([Create("/t"), *(Create(f"/t/{n}", b"state") for n in range(20_000))])
        assert len(await store.tree("/t")) == 20_001
        await store.close()

    asyncio.run(main())
