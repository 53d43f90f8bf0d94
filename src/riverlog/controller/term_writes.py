"""The writes of a controller: each checks that its term is not over.

What keeps a write from being made is a `Refusal`. A term that has been followed by another, or whose session
is lost, ends here. A write whose answer is lost, and of which the store does not tell either whether it was
made, is refused as timed out, and may stand: nothing more is decided before all is read again. Not here: what
is written.
"""

import asyncio
import logging
from collections.abc import Sequence
from itertools import compress
from typing import Final

from riverlog.controller.decisions.candidacy import Term
from riverlog.controller.decisions.refusals import NOT_CONTROLLER, Refusal
from riverlog.controller.office import Office
from riverlog.metadata import layout
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.image_builder import ROOTS
from riverlog.metadata.outcomes import write_multi
from riverlog.model.errors import ErrorCode
from riverlog.model.metadata_store import (
    BadVersionError,
    MetadataStore,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    Operation,
    OutcomeUnknownError,
    SessionLostError,
    StoreError,
    StoreWriteError,
    UnreachableError,
)

_logger = logging.getLogger(__name__)
_IN_FLIGHT_MAX: Final = 64
_TOGETHER_MAX: Final = 100


class TermWrites:
    def __init__(self, store: MetadataStore, office: Office) -> None:
        self._store = store
        self._office = office
        self._is_unsure = False
        """A write may have been made that no image shows."""

    async def look_again(self, follower: MetadataFollower) -> Refusal | None:
        """Have the image show whatever may have been written. Returns what keeps it from that."""
        if not self._is_unsure:
            return None
        try:
            await self._store.sync()
        except SessionLostError:
            self._office.resign()
            return NOT_CONTROLLER
        except StoreError as error:
            return Refusal(ErrorCode.REQUEST_TIMED_OUT, str(error))
        self._is_unsure = False
        await follower.refresh(ROOTS)
        return None

    async def write(self, term: Term, operations: Sequence[Operation]) -> Refusal | None:
        """Carry out all of it in one step, or say why none of it was written."""
        return _told([await self._write(term, operations)])[0]

    async def _write(self, term: Term, operations: Sequence[Operation]) -> Refusal | None:
        try:
            await write_multi(self._store, [term.check, *operations])
        except UnreachableError as error:
            return Refusal(ErrorCode.REQUEST_TIMED_OUT, str(error))
        except StoreWriteError as error:
            return Refusal(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
        except OutcomeUnknownError as error:
            self._is_unsure = True
            return Refusal(ErrorCode.REQUEST_TIMED_OUT, f"It is not known whether this was done. {error}")
        except SessionLostError:
            self._office.resign()
            return NOT_CONTROLLER
        except (BadVersionError, NodeExistsError, NoNodeError, NotEmptyError) as error:
            return await self._contradicted(term, error)
        return None

    async def write_each(self, term: Term, pieces: Sequence[Sequence[Operation]]) -> list[Refusal | None]:
        """Carry out each by itself, several at a time. One that is refused leaves the others as they are,
        unless the term is over."""
        outcomes: list[Refusal | None] = []
        for start in range(0, len(pieces), _IN_FLIGHT_MAX):
            some = pieces[start : start + _IN_FLIGHT_MAX]
            if NOT_CONTROLLER in outcomes:
                outcomes += [NOT_CONTROLLER] * len(some)
            else:
                outcomes += await asyncio.gather(*(self._write(term, piece) for piece in some))
        return _told(outcomes)

    async def write_changes(self, term: Term, changes: Sequence[Sequence[Operation]]) -> list[Refusal | None]:
        """As `write_each`, of small changes each of which expects a version: many in one step, and only
        where one of them is contradicted each by itself."""
        together = [changes[at : at + _TOGETHER_MAX] for at in range(0, len(changes), _TOGETHER_MAX)]
        steps = [[operation for change in some for operation in change] for some in together]
        outcomes = await self.write_each(term, steps)
        is_again = [
            len(some) > 1 and outcome is not None and outcome is not NOT_CONTROLLER
            for some, outcome in zip(together, outcomes, strict=True)
        ]
        again = [change for some in compress(together, is_again) for change in some]
        by_themselves = iter(await self.write_each(term, again))
        return [
            next(by_themselves) if is_refused else outcome
            for some, outcome, is_refused in zip(together, outcomes, is_again, strict=True)
            for _ in some
        ]

    async def _contradicted(self, term: Term, error: Exception) -> Refusal:
        """The store is not as the decision took it to be: by a later controller, or by hand."""
        try:
            node = await self._store.get(layout.CONTROLLER_EPOCH)
        except SessionLostError:
            node = None
        if node is None or node.version != term.version:
            self._office.resign()
            return NOT_CONTROLLER
        return Refusal(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"The metadata was changed by somebody else ({error}) Try again."
        )


def _told(outcomes: list[Refusal | None]) -> list[Refusal | None]:
    """Where the store could not be written the log says so, once for all that it has kept from being done."""
    found = {each.message for each in outcomes if each and each.error is ErrorCode.KAFKA_STORAGE_ERROR}
    for message in sorted(filter(None, found)):
        _logger.error("%s", message)
    return outcomes
