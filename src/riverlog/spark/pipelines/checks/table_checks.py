"""Tables of files that several flows write to, of which Spark loses rows.

Each flow is a query that counts its batches from 0, and a table of files notes the batches that it has, for
all queries alike: a batch whose number another query was first to note is passed over as done, or fails.
Tables of formats with transactions of their own know their writers apart.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from pyspark.pipelines.output import StreamingTable

from riverlog.spark.pipelines.checks.findings import Finding, Place
from riverlog.spark.pipelines.project import DEFAULT_CATALOG
from riverlog.spark.pipelines.sql_text import datasets_in, writers_in

if TYPE_CHECKING:
    from riverlog.spark.pipelines.definitions import Definitions

_FILES: Final = frozenset({"avro", "csv", "json", "orc", "parquet", "text", "xml"})
_REMEDY: Final = "unite the streams in one flow, give each a table of its own, or use a format such as delta"


def tables_of_several_flows(
    definitions: "Definitions", default_format: str, default_catalog: str
) -> Iterator[Finding]:
    """`default_format` is that of tables which name none, where the catalog is Spark's own."""
    formats = _formats(definitions, default_format, default_catalog)
    writers: dict[str, list[tuple[str, Place]]] = defaultdict(list)
    for each in definitions.flows:
        writers[_last(each.target)].append((each.name, each.place))
    for file in definitions.sql_files:
        for flow, target, line in writers_in(file.text):
            writers[_last(target)].append((flow, Place(str(file.path), line)))
    for table, found in writers.items():
        format_name = formats.get(table)
        if format_name is None or format_name.lower() not in _FILES:
            continue
        first, _ = found[0]
        for flow, place in found[1:]:
            problem = f"flow {flow} and flow {first} write to {table}, a table of {format_name} files"
            yield Finding(place, f"{problem}: Spark would lose rows of one or the other", _REMEDY)


def _formats(definitions: "Definitions", default_format: str, default_catalog: str) -> dict[str, str | None]:
    """Of streaming tables by name; None: another catalog than Spark's own decides."""
    tables = {
        each.name: each.format for each in definitions.outputs.values() if isinstance(each, StreamingTable)
    }
    in_sql = datasets_in([file.text for file in definitions.sql_files])
    tables |= {each.name: each.format for each in in_sql if not each.is_view}
    found: dict[str, str | None] = {}
    for name, format_name in tables.items():
        catalog = name.split(".")[0] if name.count(".") == 2 else default_catalog
        found[_last(name)] = format_name or (default_format if catalog == DEFAULT_CATALOG else None)
    return found


def _last(name: str) -> str:
    return name.rpartition(".")[2].lower()
