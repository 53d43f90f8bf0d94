"""The datasets that an SQL file of a project defines, by name.

Only the heads of statements are looked at; what they say is Spark's to read.
"""

import re
from dataclasses import dataclass
from typing import Final

_COMMENT: Final = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_HEAD: Final = re.compile(
    r"""\bCREATE\s+(?:OR\s+(?:REFRESH|REPLACE)\s+)?
        (?P<kind>MATERIALIZED\s+VIEW|STREAMING\s+TABLE|TEMPORARY\s+VIEW|TEMP\s+VIEW)\s+
        (?:IF\s+NOT\s+EXISTS\s+)?(?P<name>[`\w.]+)""",
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class SqlDataset:
    name: str
    is_view: bool
    """Temporary: part of the flows that read it, and nothing that could be refreshed."""


def datasets_in(text: str) -> list[SqlDataset]:
    heads = _HEAD.finditer(_COMMENT.sub(" ", text))
    return [
        SqlDataset(head["name"].replace("`", ""), head["kind"].upper().startswith("TEMP")) for head in heads
    ]
