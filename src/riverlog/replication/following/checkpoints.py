"""Recovery points after truncations: written once for all partitions that were truncated meanwhile.

What was truncated may be written anew with other records; until the recovery point on disk is as low as the
log was cut, a crash would take those for synced.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from riverlog.model.errors import DiskFullError, StorageError

_logger = logging.getLogger(__name__)
OnWritten = Callable[[bool], None]


class CheckpointWrites:
    def __init__(self, write: Callable[[], Awaitable[None]]) -> None:
        self._write = write
        self._waiting: list[OnWritten] = []
        self._task: asyncio.Task[None] | None = None

    def write(self, then: OnWritten) -> None:
        """`then` hears, later, whether the offsets of now are written."""
        self._waiting.append(then)
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="recovery points after truncation")

    async def close(self) -> None:
        """Nobody hears of anything any more; a write that is under way is finished."""
        self._waiting.clear()
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        while self._waiting:
            told, self._waiting = self._waiting, []
            is_written = True
            try:
                await self._write()
            except (StorageError, DiskFullError) as error:
                _logger.error("Recovery points could not be written after a truncation: %s", error)
                is_written = False
            for then in told:
                then(is_written)
        self._task = None
