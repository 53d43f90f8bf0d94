r"""Records as lines of text: how `produce` reads them.

    value                              a line is a value
    key<SEP>value                      with --key-separator SEP
    name=value,name=value<TAB>…        with --headers, before the key
    the text of --null                 as key or value means null (a null value is a tombstone)

Separators may hold the escapes \t, \n, \0, \\ and \xHH. The bytes of a line are kept as they are; what ends
it is taken off before.
"""

import re
from dataclasses import dataclass

from riverlog.cli.records.json_form import Headers, InputRecord, RecordSyntaxError

HEADERS_END = b"\t"
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "0": "\0", "\\": "\\"}


@dataclass(frozen=True, slots=True)
class LineSyntax:
    key_separator: bytes | None = None
    key: bytes | None = None
    """Of every record, where no separator is given."""
    null: bytes | None = None
    has_headers: bool = False
    common_headers: Headers = ()

    def parse(self, line: bytes) -> InputRecord:
        rest = line
        headers = self.common_headers
        if self.has_headers:
            text, end, rest = rest.partition(HEADERS_END)
            if not end:
                raise RecordSyntaxError("no TAB after the headers")
            headers += parse_headers(text)
        key = self.key
        if self.key_separator is not None:
            key, separator, rest = rest.partition(self.key_separator)
            if not separator:
                raise RecordSyntaxError(f"no key separator {self.key_separator.decode(errors='replace')!r}")
        return InputRecord(key=self._or_null(key), value=self._or_null(rest), headers=headers)

    def _or_null(self, data: bytes | None) -> bytes | None:
        return None if data is None or data == self.null else data


def parse_headers(text: bytes) -> Headers:
    """`name=value,name=value`; a name without `=` has a null value, and no text means no headers."""
    return tuple(_header(part) for part in text.split(b",")) if text else ()


def _header(part: bytes) -> tuple[str, bytes | None]:
    name, equals, value = part.partition(b"=")
    try:
        return name.decode(), value if equals else None
    except UnicodeDecodeError:
        raise RecordSyntaxError(f"header name {name!r} is not UTF-8") from None


def unescape(text: str) -> str:
    """The text with its backslash escapes resolved; an unknown one stays as it is."""

    def resolve(match: re.Match[str]) -> str:
        escape = match[1]
        if escape.startswith("x") and len(escape) == 3:
            return chr(int(escape[1:], 16))
        return _ESCAPED.get(escape, match[0])

    return _ESCAPE.sub(resolve, text)
