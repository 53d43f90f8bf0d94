"""The datasets that an SQL file of a project defines, by name, with the query of those that are nothing more.

Only the heads of statements are looked at; what they say is Spark's to read. A query is cut out where its
head is as plain as `CREATE STREAMING TABLE name AS …`: a statement with columns, properties or a format of
its own is left to Spark's engine as it is.
"""

import re
from dataclasses import dataclass
from typing import Final

_COMMENT_OR_TEXT: Final = re.compile(
    r"""--[^\n]* | /\*.*?\*/ | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" """, re.DOTALL | re.VERBOSE
)
_HEAD: Final = re.compile(
    r"""\s*CREATE\s+(?:OR\s+(?:REFRESH|REPLACE)\s+)?
        (?P<kind>MATERIALIZED\s+VIEW|STREAMING\s+TABLE|TEMPORARY\s+VIEW|TEMP\s+VIEW)\s+
        (?:IF\s+NOT\s+EXISTS\s+)?(?P<name>[`\w.]+)(?P<as>\s+AS\s)?""",
    re.IGNORECASE | re.VERBOSE,
)
_FLOW: Final = re.compile(
    r"\s*CREATE\s+FLOW\s+\S+\s+AS\s+(?:AUTO\s+CDC\s+INTO|INSERT\s+INTO)\s+(?:ONCE\s+)?(?P<target>[`\w.]+)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class SqlDataset:
    name: str
    is_view: bool
    """Temporary: part of the flows that read it, and nothing that could be refreshed."""
    query: str | None = None
    """That fills it, where there is nothing else to know about a view or streaming table."""

    def reads(self, name: str) -> bool:
        """Whether the query may read the dataset: the name stands in it."""
        last = name.rpartition(".")[2]
        return re.search(rf"(?<!\w){re.escape(last)}(?!\w)", self.query or "", re.IGNORECASE) is not None


def datasets_in(text: str) -> list[SqlDataset]:
    """Those that flows of their own write to have no query here, which would be only one of several."""
    statements = _statements(text)
    written = {_plain(flow["target"]) for _, masked in statements if (flow := _FLOW.match(masked))}
    return [
        _dataset(head, statement, written)
        for statement, masked in statements
        if (head := _HEAD.match(masked)) is not None
    ]


def _dataset(head: re.Match[str], statement: str, written: set[str]) -> SqlDataset:
    name, kind = _plain(head["name"]), head["kind"].upper()
    is_one_query = head["as"] and not kind.startswith("MATERIALIZED") and name not in written
    return SqlDataset(
        name, kind.startswith("TEMP"), statement[head.end() :].strip() if is_one_query else None
    )


def _statements(text: str) -> list[tuple[str, str]]:
    """Each as it stands, and with comments and texts covered up, which may hold anything."""
    masked = _COMMENT_OR_TEXT.sub(lambda found: " " * len(found[0]), text)
    found: list[tuple[str, str]] = []
    start = 0
    for end in [*(each.start() for each in re.finditer(";", masked)), len(masked)]:
        found.append((text[start:end], masked[start:end]))
        start = end + 1
    return found


def _plain(name: str) -> str:
    return name.replace("`", "")
