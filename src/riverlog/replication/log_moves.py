"""Moves of logs from one data directory of this node to another, one after the other, in the background.

A move reads in a thread, piece by piece and no faster than allowed, and writes on the event loop; the last
few records and the change-over happen in one turn of the loop, so that no request meets a log in between. A
move that fails leaves the log where it is. One that a shutdown interrupts goes on after the next start.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from riverlog.model.errors import DiskFullError, ErrorCode, StorageError
from riverlog.model.ids import TopicId, TopicPartition
from riverlog.records.batch import CorruptBatch
from riverlog.replication.partition import Partition
from riverlog.replication.replica_set import ReplicaSet
from riverlog.replication.roles import Offline
from riverlog.storage.directory.data_directories import DataDirectories
from riverlog.storage.directory.log_directory import LogDirectory
from riverlog.storage.directory.log_move import LogMove
from riverlog.storage.log.flusher import Flusher

_logger = logging.getLogger(__name__)
_LAST_PIECES_MAX: Final = 4
"""How much may be left to copy for the change-over, which holds the event loop up."""


class LogMoves:
    def __init__(
        self,
        directories: DataDirectories,
        replicas: ReplicaSet,
        flusher: Flusher,
        bytes_per_second_max: Callable[[], float],
    ) -> None:
        """The rate is asked for with each piece, so that what was altered takes effect."""
        self._directories = directories
        self._replicas = replicas
        self._flusher = flusher
        self._bytes_per_second_max = bytes_per_second_max
        self._turn = asyncio.Lock()
        self._moves: dict[TopicPartition, tuple[LogMove, asyncio.Task[None]]] = {}

    def has_directory(self, path: str) -> bool:
        return self._directories.has_directory(path)

    def place(self, topic_partition: TopicPartition, topic_id: TopicId, path: str) -> ErrorCode:
        target, home = self._directories.at(path), self._directories.directory_of(topic_partition)
        try:
            if home is None:
                target.create(topic_partition, topic_id)
                return ErrorCode.NONE
            if self._is_on_its_way(topic_partition, target):
                return ErrorCode.NONE
            self._call_off(topic_partition)
            if home is not target:
                target.health.require_online()
                self._begin(topic_partition, topic_id, home, target, is_resumed=False)
        except (StorageError, DiskFullError) as error:
            _logger.error("%s cannot be moved to %s: %s", topic_partition, path, error)
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE

    def resume(self, topic_id_of: Callable[[str], TopicId | None]) -> None:
        """Go on with what an earlier run left unfinished; before anything is served."""
        for target, topic_partition in self._directories.settle_moves():
            home = self._directories.directory_of(topic_partition)
            topic_id = topic_id_of(topic_partition.topic)
            try:
                if home is None or topic_id is None:
                    target.futures.discard(topic_partition)
                else:
                    self._begin(topic_partition, topic_id, home, target, is_resumed=True)
            except (StorageError, DiskFullError) as error:
                _logger.error("%s cannot be moved to %s: %s", topic_partition, target.path, error)

    async def close(self) -> None:
        """Leave what is unfinished to the next start."""
        tasks = [task for _, task in self._moves.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _is_on_its_way(self, topic_partition: TopicPartition, target: LogDirectory) -> bool:
        return topic_partition in self._moves and self._moves[topic_partition][0].target is target

    def _begin(
        self,
        topic_partition: TopicPartition,
        topic_id: TopicId,
        home: LogDirectory,
        target: LogDirectory,
        *,
        is_resumed: bool,
    ) -> None:
        is_trusted = is_resumed and home.was_clean
        partition = self._replicas.find(*topic_partition)
        if not isinstance(partition, Partition):
            raise StorageError(f"its log cannot be opened ({partition.name})")
        if is_resumed:
            future = target.futures.resume(topic_partition, topic_id, is_trusted=is_trusted)
        else:
            future = target.futures.begin(topic_partition, topic_id)
        move = LogMove(partition.log, home, target, future)
        task = asyncio.create_task(self._run(move, partition), name=f"moving {topic_partition}")
        self._moves[topic_partition] = (move, task)
        task.add_done_callback(lambda done: self._forget(topic_partition, done))

    def _forget(self, topic_partition: TopicPartition, task: asyncio.Task[None]) -> None:
        if topic_partition in self._moves and self._moves[topic_partition][1] is task:
            del self._moves[topic_partition]

    def _call_off(self, topic_partition: TopicPartition) -> None:
        found = self._moves.pop(topic_partition, None)
        if found is not None:
            move, task = found
            task.cancel()
            move.give_up()

    async def _run(self, move: LogMove, partition: Partition) -> None:
        try:
            async with self._turn:
                await self._copy(move)
                while not await self._change_over(move, partition):
                    await self._copy(move)
        except (StorageError, DiskFullError, CorruptBatch) as error:
            self._fail(move, partition, str(error))
        except Exception:
            _logger.exception("Moving %s failed", move.topic_partition)
            self._fail(move, partition, "see above")

    def _fail(self, move: LogMove, partition: Partition, reason: str) -> None:
        if isinstance(partition.role, Offline):
            return  # Whoever took the log away has said so, and taken the copy away too.
        _logger.error("%s is not moved to %s: %s", move.topic_partition, move.target.path, reason)
        if move.is_decided:
            # Which of the two logs a restart finds is uncertain: nothing may be added to either before it.
            partition.take_role(Offline(partition.leader_epoch))
        else:
            move.give_up()

    async def _copy(self, move: LogMove) -> None:
        """Until the copy is level, or was a moment ago, and is on disk."""
        while (piece := move.next_piece()) is not None:
            read, length, position = piece.file.pread, piece.length, piece.position
            move.write(await self._directories.in_thread(lambda: read(length, position)))  # noqa: B023
            await asyncio.sleep(length / max(self._bytes_per_second_max(), 1.0))
        await self._flusher.flush_to(move.future.sync, move.future.log_end_offset)

    async def _change_over(self, move: LogMove, partition: Partition) -> bool:
        """False when so much was written meanwhile that it must be copied first."""
        await self._directories.in_thread(move.prepare())
        for _ in range(_LAST_PIECES_MAX):
            piece = move.next_piece()
            if piece is None:
                break
            move.write(piece.file.pread(piece.length, piece.position))
        if move.lag:
            return False
        old_path = partition.log.directory
        partition.replace_log(move.finish())
        settle = move.begin_removal()
        _logger.info("%s was moved to %s", old_path, partition.log.directory)
        await self._directories.in_thread(settle)
        return True
