"""Group commit: everybody who waits for a log to be on disk shares one sync, off the event loop.

At most one sync per log runs at a time; whoever asks meanwhile waits for the next one, which covers all of
them. The flushed offset moves only after a success. A sync that fails ends its data directory (see
`guarded_disk`) and is never retried; a full disk fails the waiters of that sync only.
"""

import asyncio
from dataclasses import dataclass, field
from typing import NamedTuple

from riverlog.model.errors import DiskFullError, StorageError
from riverlog.model.executor import Executor
from riverlog.storage.log.syncing import LogSync, SyncTask


@dataclass(slots=True, eq=False)
class _Waiting:
    """The futures of one log, by the offset they wait for."""

    waiters: list[tuple[int, asyncio.Future[None]]] = field(default_factory=list)
    is_running: bool = False
    is_asked_again: bool = False


class Saving(NamedTuple):
    task: SyncTask | None
    """None where there was nothing to be saved."""
    done: "asyncio.Future[None]"
    """Fails as a sync does."""


class Flusher:
    """Lives on one event loop; logs are synced on the executor."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, executor: Executor) -> None:
        self._loop = loop
        self._executor = executor
        self._waiting: dict[LogSync, _Waiting] = {}
        self._idle = asyncio.Event()
        self._idle.set()

    def flush_to(self, log: LogSync, offset: int) -> asyncio.Future[None]:
        """Done when everything below `offset` is on disk, and what a truncation has taken away is not."""
        future: asyncio.Future[None] = self._loop.create_future()
        if log.flushed_offset >= offset and not log.is_cut:
            future.set_result(None)
            return future
        waiting = self._waiting.setdefault(log, _Waiting())
        waiting.waiters.append((offset, future))
        if not waiting.is_running:
            self._start(log, waiting)
        return future

    def request(self, log: LogSync) -> None:
        """Sync soon; nobody waits. For rolls and `flush.messages`."""
        waiting = self._waiting.setdefault(log, _Waiting())
        if waiting.is_running:
            waiting.is_asked_again = True
        else:
            self._start(log, waiting)

    def save(self, log: LogSync) -> Saving | None:
        """As `LogSync.save`, off the event loop, of a log that may be used meanwhile. None while a sync of it
        is in progress: two at once would each leave to the other what only one of them has written."""
        if log in self._waiting:
            return None
        done: asyncio.Future[None] = self._loop.create_future()
        task = log.begin_save()
        if task is None:
            done.set_result(None)
        else:
            waiting = self._waiting[log] = _Waiting([(task.end_offset, done)])
            self._run(log, waiting, task)
        return Saving(task, done)

    async def drain(self) -> None:
        """Wait until no sync is in progress; one may begin between the end of another and this one's turn."""
        while not self._idle.is_set():
            await self._idle.wait()

    def _start(self, log: LogSync, waiting: _Waiting) -> None:
        waiting.is_asked_again = False
        try:
            task = log.begin()
        except (StorageError, DiskFullError) as error:
            self._waiting.pop(log, None)
            self._fail(waiting, error)
            self._note_idle()
            return
        self._run(log, waiting, task)

    def _run(self, log: LogSync, waiting: _Waiting, task: SyncTask) -> None:
        waiting.is_running = True
        self._idle.clear()
        running = self._loop.run_in_executor(self._executor, task.run)
        running.add_done_callback(lambda done: self._finish(log, waiting, task, done))

    def _finish(self, log: LogSync, waiting: _Waiting, task: SyncTask, done: asyncio.Future[None]) -> None:
        waiting.is_running = False
        log.finish(task)
        error = done.exception()
        if error is not None:
            self._fail(waiting, error)
        else:
            self._release(log, waiting)
        if waiting.is_running:
            return  # Whoever was released has asked for the next sync already.
        if waiting.waiters or waiting.is_asked_again:
            self._start(log, waiting)
        else:
            self._waiting.pop(log, None)
            self._note_idle()

    def _release(self, log: LogSync, waiting: _Waiting) -> None:
        flushed = -1 if log.is_cut else log.flushed_offset
        ready = [future for offset, future in waiting.waiters if offset <= flushed]
        waiting.waiters = [waiter for waiter in waiting.waiters if waiter[0] > flushed]
        for future in ready:
            if not future.done():
                future.set_result(None)
        if not log.gate.is_open:
            self._fail(waiting, StorageError(f"The log {log.state.directory} was closed."))
        # What a truncation took away will never be on disk, and waiting for it would never end.
        gone = [waiter for waiter in waiting.waiters if waiter[0] > log.state.log_end_offset]
        waiting.waiters = [waiter for waiter in waiting.waiters if waiter not in gone]
        for _, future in gone:
            if not future.done():
                future.set_exception(StorageError(f"The end of {log.state.directory} was truncated."))

    def _fail(self, waiting: _Waiting, error: BaseException) -> None:
        waiters, waiting.waiters = waiting.waiters, []
        for _, future in waiters:
            if not future.done():
                future.set_exception(error)

    def _note_idle(self) -> None:
        if not self._waiting:
            self._idle.set()
