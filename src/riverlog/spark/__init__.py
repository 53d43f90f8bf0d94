"""Riverlog beside Spark: the data source and sink, functions on streams, pipelines, archive and replay.

    from riverlog.spark import archive, decode, dedup, split

The names load on first use: a worker that only runs the source need not load the rest.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from riverlog.spark.archive_seam import read_with_archive
    from riverlog.spark.archiving import archive, archive_rows, read_archive
    from riverlog.spark.each_batch import ForeachBatchWriter
    from riverlog.spark.functions.dead_letters import dead_letters_as_records
    from riverlog.spark.functions.decode import Decoded, decode
    from riverlog.spark.functions.dedup import dedup
    from riverlog.spark.functions.latest import latest_by_key
    from riverlog.spark.functions.split import split
    from riverlog.spark.listening import ProgressListener
    from riverlog.spark.replaying import Replayed, replay

__all__ = [
    "Decoded",
    "ForeachBatchWriter",
    "ProgressListener",
    "Replayed",
    "archive",
    "archive_rows",
    "dead_letters_as_records",
    "decode",
    "dedup",
    "latest_by_key",
    "read_archive",
    "read_with_archive",
    "replay",
    "split",
]

# No module has the name of what it offers: importing it would put the module in the function's place.
_HOMES = {
    "Decoded": "functions.decode",
    "ForeachBatchWriter": "each_batch",
    "ProgressListener": "listening",
    "Replayed": "replaying",
    "archive": "archiving",
    "archive_rows": "archiving",
    "dead_letters_as_records": "functions.dead_letters",
    "decode": "functions.decode",
    "dedup": "functions.dedup",
    "latest_by_key": "functions.latest",
    "read_archive": "archiving",
    "read_with_archive": "archive_seam",
    "replay": "replaying",
    "split": "functions.split",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
