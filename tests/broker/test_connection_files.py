"""Replies out of files: byte for byte, bounded turns, cold data read by threads."""

import asyncio
import os
import struct
from pathlib import Path
from typing import Any

import pytest

from riverlog.broker.exchange.context import Answer
from riverlog.broker.net import cold_reads
from riverlog.model.disk import FileSlice
from riverlog.storage.disk.local import LocalDisk, LocalFile
from tests.broker.sockets import Scripted, echo, frame, read_frame, run, served


def test_a_reply_of_files_and_bytes_arrives_byte_for_byte(tmp_path: Path) -> None:
    content = os.urandom(5_000_000)
    (tmp_path / "log").write_bytes(content)
    file = LocalDisk().open(str(tmp_path / "log"))

    async def main() -> None:
        cuts = [(0, 1), (1, 8192), (9000, 8193), (20_000, 3_000_000), (4_999_999, 1)]
        expected = b"".join(b"head" + content[at : at + length] for at, length in cuts)

        def answer(request: bytes) -> Answer:
            parts: list[Any] = [struct.pack(">i", len(expected))]
            for at, length in cuts:
                parts += [b"head", FileSlice(file, at, length)]
            return parts

        async with served(Scripted(answer)) as server:
            reader, writer = await server.connect()
            for _ in range(3):
                writer.write(frame(b"a") + frame(b"b"))
                assert await read_frame(reader) == expected
                assert await read_frame(reader) == expected
            writer.close()

    run(main)


def test_a_bulk_reader_and_a_stuck_reader_do_not_hold_up_a_small_request(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(bytes(50_000_000))
    file = LocalDisk().open(str(tmp_path / "log"))

    async def main() -> None:
        def answer(request: bytes) -> Answer:
            if request == b"bulk":
                return [struct.pack(">i", 50_000_000), FileSlice(file, 0, 50_000_000)]
            return echo(request)

        async with served(Scripted(answer)) as server:
            _, stuck = await server.connect()
            stuck.write(frame(b"bulk"))
            bulk_reader, bulk = await server.connect()
            bulk.write(frame(b"bulk"))
            reader, writer = await server.connect()
            received = 0
            for number in range(50):
                writer.write(frame(b"%d" % number))
                assert await read_frame(reader) == b"%d" % number
                received += len(await bulk_reader.read(2**20))
            assert received < 50_000_004, "the small requests were answered only after the bulk reply"
            while received < 50_000_004:
                received += len(await bulk_reader.read(2**20))
            for each in (stuck, bulk, writer):
                each.transport.abort()

    run(main)


def test_cold_records_are_read_by_a_thread_while_others_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = os.urandom(300_000)
    (tmp_path / "log").write_bytes(content)
    file = LocalDisk().open(str(tmp_path / "log"))
    monkeypatch.setattr(LocalFile, "is_warm", lambda *_: False)
    monkeypatch.setattr(LocalFile, "read_if_warm", lambda *_: None)
    release = asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []
    bring_in = cold_reads._bring_in

    def slow_disk(where: FileSlice) -> None:
        asyncio.run_coroutine_threadsafe(release.wait(), loops[0]).result(10)
        bring_in(where)

    monkeypatch.setattr(cold_reads, "_bring_in", slow_disk)

    async def main() -> None:
        loops.append(asyncio.get_running_loop())

        def answer(request: bytes) -> Answer:
            if request == b"cold":
                cut = FileSlice(file, 0, 200_000), FileSlice(file, 200_000, 5000)
                return [struct.pack(">i", 205_000), *cut]
            return echo(request)

        async with served(Scripted(answer)) as server:
            cold_reader, cold = await server.connect()
            cold.write(frame(b"cold"))
            reader, writer = await server.connect()
            for _ in range(10):
                writer.write(frame(b"hot"))
                assert await read_frame(reader) == b"hot"
            release.set()
            assert await read_frame(cold_reader) == content[:205_000]
            for each in (cold, writer):
                each.close()

    run(main)


def test_a_file_cut_short_under_a_promised_reply_closes_the_connection(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(bytes(20_000))
    file = LocalDisk().open(str(tmp_path / "log"))

    async def main() -> None:
        promised = iter([FileSlice(file, 0, 30_000), FileSlice(file, 19_990, 20)])

        def answer(request: bytes) -> Answer:
            part = next(promised)
            return [struct.pack(">i", part.length), part]

        async with served(Scripted(answer)) as server:
            for _ in range(2):
                reader, writer = await server.connect()
                writer.write(frame(b"read"))
                await asyncio.wait_for(reader.read(), 10)

    run(main)
