"""A small writer of Python source, for the codecs that are compiled from the message tables."""

import struct
from collections.abc import Callable
from typing import Any, Final

FORMATS: Final = {
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "int64": "q",
    "float64": "d",
    "bool": "?",
    "uuid": "16s",
}
"""Kinds of fixed width, and the letter that `struct` has for each."""

LETTER_BYTES: Final = {letter: struct.calcsize(f">{letter}") for letter in FORMATS.values()}


class Source:
    """Lines of one function at a growing and shrinking depth, with the objects that they refer to."""

    def __init__(self, scope: dict[str, Any]) -> None:
        self.scope = dict(scope)
        self._lines: list[str] = []
        self._depth = 0
        self._names = 0

    def line(self, text: str) -> None:
        self._lines.append(" " * self._depth + text)

    def indent(self, text: str) -> None:
        self.line(text)
        self._depth += 1

    def dedent(self, levels: int = 1) -> None:
        self._depth -= levels

    def name(self, prefix: str) -> str:
        """A variable that is not in use yet."""
        self._names += 1
        return f"{prefix}{self._names}"

    def constant(self, prefix: str, value: Any) -> str:
        """A global name of the function that holds `value`."""
        name = f"{prefix}_{len(self.scope)}"
        self.scope[name] = value
        return name

    def bound(self, letters: str, method: str) -> str:
        """The name of `struct.Struct(letters).<method>`."""
        name = f"{method}_{letters}".replace("?", "B_")
        if name not in self.scope:
            self.scope[name] = getattr(struct.Struct(f">{letters}"), method)
        return name

    def function(self, name: str) -> Callable[..., Any]:
        code = compile("\n".join(self._lines), f"<riverlog.wire {name}>", "exec")
        exec(code, self.scope)
        function: Callable[..., Any] = self.scope[name]
        return function
