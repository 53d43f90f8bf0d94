"""Named tuples made without the Python call that their constructor is, for what every request makes."""

from collections.abc import Callable
from types import MethodType
from typing import Any, Final, TypeVar, TypeVarTuple

_Fields = TypeVarTuple("_Fields")
_Made = TypeVar("_Made")

_new: Final[Callable[[Any, tuple[Any, ...]], Any]] = tuple.__new__


def maker_of(cls: Callable[[*_Fields], _Made]) -> Callable[[tuple[*_Fields]], _Made]:
    """A function that makes a named tuple of a plain tuple of all its fields, in half the time.

    The type checker holds number and types of the fields against the class; at run time nothing does. Bound
    as a method is: a `partial` would copy its arguments at every call.
    """
    return MethodType(_new, cls)
