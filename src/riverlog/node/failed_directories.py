"""What a broker of a cluster does when a data directory fails: others lead what is in it, within moments.

The replicas in it are offline at once; the registration names them, so that the controller has others lead
them and takes them out of ISRs, and no leader takes them in again. They stay so until the next start. A
broker whose directories have all failed ends its registration and is done. A full disk is no failure (ADR 3).
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final

from riverlog.metadata.registrar import Registrar
from riverlog.model.ids import TopicId, TopicPartition
from riverlog.model.metadata_store import StoreError
from riverlog.replication.replica_set import ReplicaSet
from riverlog.storage.directory.data_directories import DataDirectories

_logger = logging.getLogger(__name__)
_GOODBYE_S: Final = 1.0


class FailedDirectories:
    def __init__(
        self,
        directories: DataDirectories,
        replicas: ReplicaSet,
        registrar: Registrar,
        is_done: Callable[[], None],
    ) -> None:
        """`is_done` hears that no directory is left."""
        self._directories = directories
        self._replicas = replicas
        self._registrar = registrar
        self._is_done = is_done
        self._loop = asyncio.get_running_loop()
        self._leaving: asyncio.Task[None] | None = None
        self._is_closed = False

    def start(self) -> None:
        """Also looks at what has failed already."""
        self._directories.on_failure(self._on_failure)
        if self._directories.has_failed:
            self._look()

    async def close(self) -> None:
        self._is_closed = True
        if self._leaving is not None:
            await self._leaving

    def _on_failure(self) -> None:
        """In whichever thread met the failure, and in the middle of what it does."""
        with suppress(RuntimeError):  # The loop is closed: nobody is served any more.
            self._loop.call_soon_threadsafe(self._look)

    def _look(self) -> None:
        if self._is_closed or self._leaving is not None:
            return
        offline = list(self._directories.offline())
        self._replicas.fail(offline)
        if self._directories.online:
            self._registrar.announce_offline(by_topic(offline))
        else:
            self._leaving = asyncio.create_task(self._leave(), name="leaving the cluster")

    async def _leave(self) -> None:
        _logger.error("All data directories have failed; the broker leaves the cluster")
        with suppress(StoreError, TimeoutError):
            await asyncio.wait_for(self._registrar.leave(), _GOODBYE_S)
        self._is_done()


def by_topic(partitions: Iterable[tuple[TopicPartition, TopicId]]) -> Mapping[TopicId, tuple[int, ...]]:
    """As a registration names them."""
    found: defaultdict[TopicId, list[int]] = defaultdict(list)
    for partition, topic_id in partitions:
        found[topic_id].append(partition.partition)
    return {topic_id: tuple(sorted(indexes)) for topic_id, indexes in found.items()}
