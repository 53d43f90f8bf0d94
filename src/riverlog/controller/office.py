"""Wins, holds and loses the office of the controller. Decides nothing: `candidacy` does.

A broker that finds the office taken waits until its image shows nobody in it, and tries again. Who has won
takes over what the last one left, and serves its term until its session or a check of the term is lost. Not
here: what a controller does in office.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from riverlog.controller.decisions.candidacy import Term, decide_claim
from riverlog.metadata import layout
from riverlog.metadata.delta import ImageDelta
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.outcomes import write_multi
from riverlog.model.ids import NodeId
from riverlog.model.metadata_store import (
    BadVersionError,
    MetadataStore,
    NodeExistsError,
    NoNodeError,
    OutcomeUnknownError,
    SessionLostError,
    SessionState,
    StoreError,
    UnreachableError,
    Watching,
)

_logger = logging.getLogger(__name__)
_TRY_AGAIN_S: Final = 1.0
_GOODBYE_S: Final = 1.0


class Office:
    def __init__(
        self,
        store: MetadataStore,
        follower: MetadataFollower,
        node_id: NodeId,
        *,
        wall_ms: Callable[[], int],
        take_over: Callable[[Term], Awaitable[None]],
    ) -> None:
        """`take_over` is called with a term that has been won, before it is this broker's to serve."""
        self._store = store
        self._follower = follower
        self._node_id = node_id
        self._wall_ms = wall_ms
        self._take_over = take_over
        self._won: Term | None = None
        self._term: Term | None = None
        self._standing: asyncio.Task[None] | None = None
        self._again: asyncio.TimerHandle | None = None
        self._watching: Watching | None = None
        self._is_closed = False

    @property
    def term(self) -> Term | None:
        """The term that this broker serves; `None` while it is not the controller."""
        return self._term

    async def start(self) -> None:
        """Stand for the office once, and again whenever it becomes vacant."""
        self._watching = self._store.watch_session(self._on_session)
        try:
            await self._stand()
        except (SessionLostError, OutcomeUnknownError, UnreachableError) as error:
            self._try_again(error)
        self._follower.subscribe(self._on_image)
        self._stand_if_vacant()

    async def close(self, *, vacates: bool = False) -> None:
        """`vacates`: others need not wait until the session has ended, which it does last of all."""
        is_holder = self._term is not None
        self._is_closed = True
        self._won = self._term = None
        if vacates and is_holder and self._store.session_state is SessionState.CONNECTED:
            with suppress(StoreError, TimeoutError):
                await asyncio.wait_for(self._store.delete(layout.CONTROLLER), _GOODBYE_S)
        if self._watching is not None:
            self._watching.stop()
        if self._again is not None:
            self._again.cancel()
        if self._standing is not None:
            self._standing.cancel()
            await asyncio.gather(self._standing, return_exceptions=True)

    def resign(self) -> None:
        """The term is over: another has followed, or the session is lost."""
        if self._won is not None:
            _logger.warning("Broker %d is no longer the controller", self._node_id)
            self._stand_later()
        self._won = self._term = None

    def _on_session(self, state: SessionState) -> None:
        if state is SessionState.LOST:
            self.resign()
        elif state is SessionState.CONNECTED:
            self._stand_if_vacant()

    def _on_image(self, delta: ImageDelta) -> None:
        if self._term is not None and delta.new.controller_id != self._node_id:
            self.resign()
        self._stand_if_vacant()

    def _stand_if_vacant(self) -> None:
        if self._is_closed or self._won is not None or not self._is_vacant:
            return
        if self._standing is None or self._standing.done():
            self._standing = asyncio.create_task(self._stand_again(), name="controller candidacy")

    @property
    def _is_vacant(self) -> bool:
        return self._follower.image.controller_id in (None, self._node_id)

    async def _stand_again(self) -> None:
        try:
            await self._stand()
        except StoreError as error:
            self._try_again(error)
        else:
            self._look_again_if_vacant()

    def _look_again_if_vacant(self) -> None:
        """What was heard while this broker stood was not acted on, and may have been the last there is."""
        if self._won is None and self._is_vacant:
            self._stand_later()

    def _try_again(self, error: StoreError) -> None:
        _logger.warning("Broker %d could not stand for the controller: %s", self._node_id, error)
        self._stand_later()

    def _stand_later(self) -> None:
        """Should neither an image nor a session bring the next chance sooner."""
        if self._again is not None:
            self._again.cancel()
        if not self._is_closed:
            loop = asyncio.get_running_loop()
            self._again = loop.call_later(_TRY_AGAIN_S, self._stand_if_vacant)

    async def _stand(self) -> None:
        """Returns when this broker is the controller, or its image shows who is."""
        await self._store.sync()  # A store that has gone back says so, and no claim is written there.
        epoch = await self._store.get(layout.CONTROLLER_EPOCH)
        holder = await self._store.get(layout.CONTROLLER)
        claim = decide_claim(holder, epoch, self._node_id, self._wall_ms())
        if claim is not None:
            try:
                await write_multi(self._store, claim.operations, proof=claim.proof)
                self._won = claim.term
            except (NodeExistsError, BadVersionError, NoNodeError):
                _logger.debug("Broker %d came second in the election of a controller", self._node_id)
        await self._follower.refresh([layout.CONTROLLER])
        if claim is not None and self._won == claim.term:
            await self._enter(claim.term)

    async def _enter(self, term: Term) -> None:
        try:
            await self._take_over(term)
        except BaseException:
            self._won = None
            raise
        if self._follower.image.controller_id != self._node_id:
            self.resign()
        if self._won == term:
            level = logging.INFO if len(self._follower.image.brokers) > 1 else logging.DEBUG
            _logger.log(level, "Broker %d is the controller of epoch %d", self._node_id, term.epoch)
            self._term = term
