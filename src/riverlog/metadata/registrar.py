"""Keeps a broker registered: once at its start, and again in every new session with the store, as soon as the
metadata is followed there. In a store that was restored from a backup it would be registered under an epoch
that the others do not know, and its fetches would be refused.

While the session is lost, the store shows another process under the broker's number, or the cluster is one
that this release cannot be in, `broker_epoch` is None. Not here: what a registration is (`registration`).
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from riverlog.metadata import layout, payloads
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.registration import Registrant, Taken, register
from riverlog.metadata.restarts import Restart
from riverlog.model.errors import BrokerIdInUseError, FormatError
from riverlog.model.ids import BrokerEpoch, TopicId
from riverlog.model.log_end import LogEnds
from riverlog.model.metadata_store import (
    BadVersionError,
    Delete,
    MetadataStore,
    SessionState,
    Set,
    StoreError,
    StoreWriteError,
    UnreachableError,
    WatchEvent,
    Watching,
)

_logger = logging.getLogger(__name__)
_RETRY_MIN_S: Final = 0.1
_RETRY_MAX_S: Final = 2.0
_PATIENCE: Final = 1.5
"""Times the session time-out, after which a session of a process that has ended is surely over."""


class Registrar:
    def __init__(
        self,
        store: MetadataStore,
        follower: MetadataFollower,
        me: Registrant,
        *,
        session_timeout_s: float,
        wall_ms: Callable[[], int],
        restart: Restart | None = None,
    ) -> None:
        """`restart` comes before the first registration."""
        self._store, self._follower, self._me = store, follower, me
        self._path = layout.broker(me.node_id)
        self._session_timeout_s = session_timeout_s
        self._wall_ms = wall_ms
        self._epoch: BrokerEpoch | None = None
        self._last_epoch: BrokerEpoch | None = None
        self._restart = restart
        self._is_shutting_down = False
        self._changed = asyncio.Event()
        self._watching: list[Watching] = []
        self._task: asyncio.Task[None] | None = None

    @property
    def broker_epoch(self) -> BrokerEpoch | None:
        """Under which this broker is registered now, as far as it knows."""
        return self._epoch

    @property
    def last_epoch(self) -> BrokerEpoch | None:
        """Under which this broker was registered last, and under which the others know it as long as they
        have not heard that its session has ended."""
        return self._last_epoch

    async def start(self) -> None:
        """Raises `BrokerIdInUseError` when another process has the number for longer than a session that has
        ended would."""
        self._watching = [
            self._store.watch(self._path, self._on_change),
            self._store.watch_session(self._on_session),
        ]
        loop = asyncio.get_running_loop()
        until_s = loop.time() + self._session_timeout_s * _PATIENCE
        while isinstance(outcome := await self._try(), Taken):
            if loop.time() >= until_s:
                raise BrokerIdInUseError(
                    f"broker id {self._me.node_id} is in use by {outcome.by}. Give this broker another "
                    "node.id, or stop the other one."
                )
            _logger.warning("Broker id %d is in use by %s; waiting", self._me.node_id, outcome.by)
            await self._wait(until_s - loop.time())
        await self._follower.refresh([self._path])
        self._task = asyncio.create_task(self._keep(), name="broker registration")

    async def close(self) -> None:
        for watching in self._watching:
            watching.stop()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def announce_shutdown(self) -> None:
        """Tell the others that this broker is about to go. Best effort: they also see when it has gone."""
        self._is_shutting_down = True
        try:
            await self._tell_of_me()
        except BadVersionError:  # It has just told something else of itself.
            await self._tell_of_me()

    def announce_offline(self, partitions: Mapping[TopicId, tuple[int, ...]]) -> None:
        """Have the others told, as soon as the store can be, that these are in directories which have failed;
        all there are, also those that were told of before."""
        self._me = self._me._replace(offline=partitions)
        self._changed.set()

    def announce_log_ends(self, log_ends: LogEnds) -> None:
        """Have the others told how far the logs of these partitions go; all there are, also those that were
        told of before."""
        self._me = self._me._replace(log_ends=log_ends)
        self._changed.set()

    async def leave(self) -> None:
        """End the registration: this broker serves nothing any more. Best effort: it also ends with the
        session."""
        await self.close()
        self._epoch = None
        node = await self._store.get(self._path)
        if node is not None and node.is_mine:
            await self._store.multi([Delete(self._path, node.version)])

    async def _tell_of_me(self) -> None:
        """Have the registration say what is so."""
        node = await self._store.get(self._path)
        if node is None or not node.is_mine:
            return
        told = payloads.decode_broker(self._path, node.data)
        wanted = told._replace(
            is_shutting_down=self._is_shutting_down, offline=self._me.offline, log_ends=self._me.log_ends
        )
        if wanted != told:
            data = payloads.encode_broker(wanted, self._wall_ms())
            await self._store.multi([Set(self._path, data, node.version)])

    async def _keep(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            while (reason := await self._refused()) is not None:
                self._epoch = None
                _logger.error("Broker %d is not in the cluster: %s", self._me.node_id, reason)
                await self._wait(self._session_timeout_s)
            await self._follower.refresh([self._path])

    async def _refused(self) -> str | None:
        try:
            outcome = await self._try()
        except FormatError as error:
            return str(error)
        if isinstance(outcome, Taken):
            return (
                f"its number is in use by {outcome.by}, with a directory of its own or with a copy of this "
                "one. Stop one of the two."
            )
        return None

    async def _try(self) -> BrokerEpoch | Taken:
        """Asks until the store answers, and shows nothing that is older than what is known."""
        retry_s, told = _RETRY_MIN_S, ""
        while True:
            try:
                if self._last_epoch is not None:
                    await self._follower.refresh()
                outcome = await register(
                    self._store,
                    self._me,
                    self._wall_ms(),
                    last_epoch=self._last_epoch,
                    restart=self._restart if self._last_epoch is None else None,
                )
                if isinstance(outcome, int):
                    await self._tell_of_me()
            except StoreError as error:
                if self._task is None and _is_unwritable(error):
                    raise  # Nobody is served yet, and whoever starts it can free the disk.
                if str(error) != told:
                    _logger.warning("Broker %d cannot register: %s", self._me.node_id, error)
                    told = str(error)
                await asyncio.sleep(retry_s)
                retry_s = min(2 * retry_s, _RETRY_MAX_S)
                continue
            if not isinstance(outcome, Taken) and outcome != self._epoch:
                self._epoch = outcome
                # The first one is part of every start and not worth a line.
                level = logging.DEBUG if self._last_epoch is None else logging.INFO
                _logger.log(level, "Broker %d is registered with epoch %d", self._me.node_id, outcome)
                self._last_epoch = outcome
            return outcome

    async def _wait(self, timeout_s: float) -> None:
        """Until the registration changes."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), timeout_s)
        self._changed.clear()

    def _on_change(self, event: WatchEvent) -> None:
        self._changed.set()

    def _on_session(self, state: SessionState) -> None:
        if state is SessionState.LOST:
            self._epoch = None
        elif state is SessionState.CONNECTED:
            self._changed.set()


def _is_unwritable(error: StoreError) -> bool:
    """Whether the store answers and cannot be written, as when its disk is full."""
    return isinstance(error, StoreWriteError) and not isinstance(error, UnreachableError)
