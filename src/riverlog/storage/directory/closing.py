"""Saving the open logs of a data directory at a clean shutdown: in parallel, with a word when it takes long.

First all the writing, then all the syncing: a file system commits much of it at once. A log that was not
written since its last sync costs nothing. Those of one directory share the sync of that directory.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from riverlog.model.executor import Executor
from riverlog.storage.log.log import Log

_logger = logging.getLogger(__name__)
_LOGS_AT_ONCE = 16
_TELL_EVERY_S = 2.0


def write_states(logs: Sequence[Log]) -> None:
    """Blocks; any thread."""
    for log in logs:
        log.sync.write_state()


def close_saved(logs: Sequence[Log]) -> None:
    """Sync and close. Blocks; any thread. The caller syncs the data directory afterwards."""
    for log in logs:
        log.close(parent_is_synced=True)


async def save(path: str, logs: Sequence[Log], executor: Executor) -> None:
    """All of them; raises the first failure when none is in the making any more."""
    await _for_all(path, "written", logs, write_states, executor)
    await _for_all(path, "saved", logs, close_saved, executor)


async def _for_all(
    path: str, done_how: str, logs: Sequence[Log], work: Callable[[Sequence[Log]], None], executor: Executor
) -> None:
    loop = asyncio.get_running_loop()
    chunks = [logs[start : start + _LOGS_AT_ONCE] for start in range(0, len(logs), _LOGS_AT_ONCE)]
    all_work = [loop.run_in_executor(executor, work, chunk) for chunk in chunks]
    left: set[asyncio.Future[None]] = set(all_work)
    while left:
        _, left = await asyncio.wait(left, timeout=_TELL_EVERY_S)
        if left:
            count = sum(len(chunk) for chunk, each in zip(chunks, all_work, strict=True) if each not in left)
            _logger.info(
                "stopping: %d of the %d open logs of %s are %s; a second signal does not make it quicker",
                count,
                len(logs),
                path,
                done_how,
            )
    failures = [error for each in all_work if (error := each.exception()) is not None]
    if failures:
        raise failures[0]
