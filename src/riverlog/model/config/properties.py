"""Java's properties format, in which server.properties files are written.

`#` and `!` begin comments; `=`, `:` or white space ends a key; a backslash continues a line or escapes a
character, `\\uXXXX` among them. Each pair comes with the number of the line on which it begins.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from riverlog.model.errors import ConfigError


class Property(NamedTuple):
    name: str
    value: str
    line: int


_BLANKS = " \t\f"
_KEY = re.compile(r"((?:\\.|[^\\ \t\f=:])*)[ \t\f]*[=:]?[ \t\f]*", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(text: str, source: str) -> list[Property]:
    """The pairs of a file in their order, a later one for the same key being the one that counts.

    `source` names the file in errors.
    """
    pairs = []
    for number, line in _logical_lines(text):
        found = _KEY.match(line)
        assert found is not None
        place = f"{source} line {number}"
        name, value = (_unescape(part, place) for part in (found[1], line[found.end() :]))
        pairs.append(Property(name, value, number))
    return pairs


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines without blank ones, comments and leading white space, continued ones joined."""
    joined: list[str] = []
    first = 0
    for number, raw in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        line = raw.lstrip(_BLANKS)
        if not joined:
            if not line or line[0] in "#!":
                continue
            first = number
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            joined.append(line[:-1])
        else:
            yield first, "".join([*joined, line])
            joined.clear()
    if "".join(joined):
        yield first, "".join(joined)


def _unescape(text: str, place: str) -> str:
    def replace(found: re.Match[str]) -> str:
        escaped = found[1]
        if escaped == "u":
            raise ConfigError(f"{place}: \\u must be followed by four hexadecimal digits")
        if len(escaped) == 5:
            return chr(int(escaped[1:], 16))
        return _ESCAPED.get(escaped, escaped)

    return _ESCAPE.sub(replace, text)
