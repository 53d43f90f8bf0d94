"""The datasets that the SQL files of a project define, by name, with the query of each that one query fills.

Only the heads of statements are looked at; what they say is Spark's to read. A head as plain as `CREATE
STREAMING TABLE name AS …` says nothing but the query. One with columns, properties or a format is left to
Spark's engine as it is, which makes the table; the query is known all the same. What other flows write to,
and what stands in a file that changes settings or the database for what follows, is the engine's altogether.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

_COMMENT_OR_TEXT: Final = re.compile(
    r"""--[^\n]* | /\*.*?\*/ | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" """, re.DOTALL | re.VERBOSE
)
_HEAD: Final = re.compile(
    r"""\s*CREATE\s+(?:OR\s+(?:REFRESH|REPLACE)\s+)?
        (?P<kind>MATERIALIZED\s+VIEW|STREAMING\s+TABLE|TEMPORARY\s+VIEW|TEMP\s+VIEW)\s+
        (?:IF\s+NOT\s+EXISTS\s+)?(?P<name>[`\w.]+)""",
    re.IGNORECASE | re.VERBOSE,
)
_REST: Final = re.compile(
    r"""(?P<attributes>(?:\s*\(\s*\))?
        (?:\s+(?:USING\s+(?P<format>\w+)|PARTITIONED\s+BY\s*\(\s*\)|CLUSTER\s+BY\s*\(\s*\)|COMMENT
           |TBLPROPERTIES\s*\(\s*\)|OPTIONS\s*\(\s*\)))*)
        \s*(?:$|(?P<as>(?<=[\s)])AS\s))""",
    re.IGNORECASE | re.VERBOSE,
)
"""With what is in parentheses covered up."""
_FLOW: Final = re.compile(
    r"""\s*CREATE\s+FLOW\s+(?P<name>[`\w.]+)\s+(?:COMMENT\s+)?AS\s+
        (?:(?P<cdc>AUTO\s+CDC\s+INTO)|INSERT\s+INTO)\s+(?:ONCE\s+)?(?:TABLE\s+)?(?P<target>[`\w.]+)
        (?P<by_name>\s+BY\s+NAME\s)?""",
    re.IGNORECASE | re.VERBOSE,
)
_CHANGES_WHAT_FOLLOWS: Final = re.compile(r"\s*(?:SET|USE)\s", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SqlDataset:
    name: str
    is_view: bool
    """Temporary: part of the flows that read it, and nothing that could be refreshed."""
    query: str | None = None
    """That alone fills a view or streaming table."""
    flow: str | None = None
    """Which is that of the query; None: it has the name of the dataset."""
    is_made_by_engine: bool = False
    """A table that has more to it than what the query gives."""
    format: str | None = None
    is_materialized: bool = False

    def reads(self, name: str) -> bool:
        """Whether the query may read the dataset: the name stands in it."""
        last = name.rpartition(".")[2]
        return re.search(rf"(?<!\w){re.escape(last)}(?!\w)", self.query or "", re.IGNORECASE) is not None


@dataclass(frozen=True, slots=True)
class _SqlFlow:
    name: str
    target: str
    query: str | None


def datasets_in(texts: Sequence[str]) -> list[SqlDataset]:
    """Of all files of a project: a flow may stand in another one than its table."""
    files = [_statements(text) for text in texts]
    flows = [flow for statements in files for flow in _flows(statements)]
    writers = Counter(_last(each.target) for each in flows)
    found: list[SqlDataset] = []
    for statements in files:
        is_plain = not any(_CHANGES_WHAT_FOLLOWS.match(masked) for _, masked in statements)
        for statement, masked in statements:
            if (head := _HEAD.match(masked)) is not None:
                dataset = _dataset(head, statement, masked)
                if writers[_last(dataset.name)]:
                    dataset = _written_by(dataset, [each for each in flows if _is_into(each, dataset)])
                found.append(dataset if is_plain else replace(dataset, query=None))
    return found


def _dataset(head: re.Match[str], statement: str, masked: str) -> SqlDataset:
    name, kind = _plain(head["name"]), head["kind"].upper()
    is_view = kind.startswith("TEMP")
    rest = _REST.match(_without_parenthesised(masked), head.end())
    if kind.startswith("MATERIALIZED"):
        return SqlDataset(name, is_view, is_materialized=True)
    if rest is None:
        return SqlDataset(name, is_view)
    is_made_by_engine = bool(rest["attributes"].strip()) or not rest["as"]
    if is_view and is_made_by_engine:
        return SqlDataset(name, is_view)
    query = statement[rest.end() :].strip() if rest["as"] else None
    return SqlDataset(name, is_view, query, None, is_made_by_engine, rest["format"])


def _written_by(dataset: SqlDataset, flows: Sequence[_SqlFlow]) -> SqlDataset:
    """By one flow of its own, or by more than one."""
    if len(flows) == 1 and dataset.query is None and dataset.is_made_by_engine and flows[0].query:
        return SqlDataset(dataset.name, False, flows[0].query, flows[0].name, True, dataset.format)
    return SqlDataset(dataset.name, dataset.is_view, format=dataset.format)


def writers_in(text: str) -> Iterator[tuple[str, str, int]]:
    """Flows with the table that each writes to, and its line: a table's own query is one of its name."""
    masked = _masked(text)
    start = 0
    for statement, covered in _statements(text):
        line = masked.count("\n", 0, start + len(covered) - len(covered.lstrip())) + 1
        start += len(statement) + 1
        for flow in _flows([(statement, covered)]):
            if flow.query is not None:
                yield flow.name, flow.target, line
        head = _HEAD.match(covered)
        if head is not None and (dataset := _dataset(head, statement, covered)).query and not dataset.is_view:
            yield dataset.name, dataset.name, line


def _flows(statements: Sequence[tuple[str, str]]) -> Iterator[_SqlFlow]:
    for statement, masked in statements:
        if (found := _FLOW.match(masked)) is not None:
            is_one_query = found["by_name"] and not found["cdc"]
            query = statement[found.end() :].strip() if is_one_query else None
            yield _SqlFlow(_plain(found["name"]), _plain(found["target"]), query)


def _is_into(flow: _SqlFlow, dataset: SqlDataset) -> bool:
    return _last(flow.target) == _last(dataset.name)


def _statements(text: str) -> list[tuple[str, str]]:
    """Each as it stands, and with comments and texts covered up, which may hold anything."""
    masked = _masked(text)
    found: list[tuple[str, str]] = []
    start = 0
    for end in [*(each.start() for each in re.finditer(";", masked)), len(masked)]:
        found.append((text[start:end], masked[start:end]))
        start = end + 1
    return found


def _masked(text: str) -> str:
    """Of the same length, and with the same lines."""
    return _COMMENT_OR_TEXT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def _without_parenthesised(masked: str) -> str:
    """Of the same length; the parentheses of the outermost pairs stay."""
    depth = 0
    found = []
    for letter in masked:
        depth -= letter == ")"
        found.append(letter if depth <= 0 else " ")
        depth += letter == "("
    return "".join(found)


def _last(name: str) -> str:
    return name.rpartition(".")[2].lower()


def _plain(name: str) -> str:
    return name.replace("`", "")
