"""Errors as Spark shows them: the line that says what happened, without the way through this package.

Spark prints the whole traceback of whatever leaves a data source. Of a failure that is meant for a person the
message is all that helps, so its traceback begins anew at the edge; that of a bug stays whole.
"""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import ParamSpec, TypeVar

from riverlog.model.errors import RiverlogError
from riverlog.spark.worker_memory import set_loaded_aside

_P = ParamSpec("_P")
_T = TypeVar("_T")


def plainly(work: Callable[_P, _T]) -> Callable[_P, _T]:
    """For a method that Spark calls."""

    @wraps(work)
    def told(*args: _P.args, **named: _P.kwargs) -> _T:
        set_loaded_aside()
        try:
            return work(*args, **named)
        except RiverlogError as error:
            raise error.with_traceback(None) from None

    return told


def plainly_each(work: Callable[_P, Iterator[_T]]) -> Callable[_P, Iterator[_T]]:
    """For one that gives an iterator."""

    @wraps(work)
    def told(*args: _P.args, **named: _P.kwargs) -> Iterator[_T]:
        set_loaded_aside()
        try:
            yield from work(*args, **named)
        except RiverlogError as error:
            raise error.with_traceback(None) from None

    return told
