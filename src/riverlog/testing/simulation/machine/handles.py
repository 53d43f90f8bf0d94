"""Callbacks that wait for their turn, as asyncio's loops hand them out.

Those of asyncio ask the loop at every turn whether it is being debugged, which the virtual one never is.
"""

import asyncio
import contextvars
from collections.abc import Callable
from typing import Any, TypeAlias


class Turn(asyncio.Handle):
    """Of `call_soon`."""

    __slots__ = ()
    _callback: Callable[..., object]
    _context: contextvars.Context
    _repr: str | None
    _source_traceback: None

    def __init__(
        self, callback: Callable[..., object], args: tuple[Any, ...], context: contextvars.Context | None
    ) -> None:
        self._callback, self._args = callback, args
        self._context = contextvars.copy_context() if context is None else context
        self._cancelled = False
        self._repr = self._source_traceback = None

    def cancel(self) -> None:
        _cancel(self)


class Timer(asyncio.TimerHandle):
    """Of `call_later` and `call_at`."""

    __slots__ = ()
    _callback: Callable[..., object]
    _context: contextvars.Context
    _repr: str | None
    _source_traceback: None

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: contextvars.Context | None,
    ) -> None:
        self._when, self._scheduled = when, False
        self._callback, self._args = callback, args
        self._context = contextvars.copy_context() if context is None else context
        self._cancelled = False
        self._repr = self._source_traceback = None

    def cancel(self) -> None:
        _cancel(self)


Handle: TypeAlias = Turn | Timer


def _cancel(handle: Handle) -> None:
    """It stays in its queue until its turn, and holds on to nothing."""
    handle._cancelled = True
    handle._callback, handle._args = _nothing, ()


def _nothing() -> None:
    pass
