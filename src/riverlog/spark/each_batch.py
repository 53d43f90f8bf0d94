"""For `foreachBatch`: each batch of a query into topics, exactly once by query and batch number.

Spark takes a Python sink in the output modes append and complete only. What updates its rows goes through
`foreachBatch`, which Spark runs again for a batch that it has not noted as done; a plain `df.write` in there
would write such a batch twice. This writer tells the sink which query and which batch the rows belong to, and
the sink finds out what has been decided about them.

The query is known by its id, which the thread that runs the batch has. Over Spark Connect that thread is on
the server and the function elsewhere: there the query needs a name.
"""

import re
import secrets
from collections.abc import Mapping
from typing import ClassVar, Final

from pyspark.errors import PySparkAttributeError
from pyspark.sql import DataFrame

from riverlog.model.errors import RiverlogError
from riverlog.spark.connection import OptionError
from riverlog.spark.sink.batch_epochs import BatchEpoch
from riverlog.spark.sink.options import SinkOptions, sink_options

_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,200}")
"""What may stand in a topic's name: neither the sign between the parts of an identity nor that behind it."""
_WRITERS_MAX: Final = 1024

_process_run: Final = secrets.token_hex(16)
"""Over Spark Connect each start of a query runs its function in a process of its own."""
_written: dict[str, tuple[str, int]] = {}
"""By identity, the newest batch that is written, and in which run."""


class ForeachBatchWriter:
    """Give it to `foreachBatch`, or call it in a function of your own with the rows and the batch's number.

    `options` are those of the sink. `name` tells the writers of one query apart; by default it is the topic.
    `query_name` stands for the query's id, and must be given over Spark Connect: it has to stay the same for
    as long as the checkpoint is used, and no other query may have it.
    """

    format_name: ClassVar[str] = "riverlog"

    def __init__(
        self, options: Mapping[str, str], *, name: str | None = None, query_name: str | None = None
    ) -> None:
        self._options = dict(options)
        chosen = _checked(options)
        self._name = _checked_name("name", name or chosen.topic or "rows")
        self._query_name = None if query_name is None else _checked_name("query_name", query_name)

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        query, run = self._query_of(rows)
        identity = f"{query}:{self._name}"
        if _written.get(identity) == (run, batch_id):
            raise RiverlogError(
                f"batch {batch_id} was written by {self._name} already, and what is written twice under one "
                "name is dropped; give each write of a batch a ForeachBatchWriter with a name of its own"
            )
        writer = rows.write.format(self.format_name).mode("append").options(**self._options)
        writer.options(**BatchEpoch(identity, run, batch_id).as_options()).save()
        _remember(identity, run, batch_id)

    def _query_of(self, rows: DataFrame) -> tuple[str, str]:
        """What the query is known by, and which run of it this is."""
        try:
            context = rows.sparkSession.sparkContext
        except PySparkAttributeError:
            if self._query_name is None:
                raise RiverlogError(
                    "over Spark Connect the function of foreachBatch cannot see which query it belongs to; "
                    "give ForeachBatchWriter a query_name that stays with the checkpoint"
                ) from None
            return self._query_name, _process_run
        query = context.getLocalProperty("sql.streaming.queryId")
        run = context.getLocalProperty("spark.jobGroup.id")
        if not query or not run:
            raise RiverlogError(
                "no streaming query runs here; call ForeachBatchWriter in the function of foreachBatch, and "
                "write other rows with df.write"
            )
        return self._query_name or query, run


def _checked(options: Mapping[str, str]) -> SinkOptions:
    chosen = sink_options(options, is_stream=False)
    if chosen.write_id is not None:
        raise OptionError(
            "writeId", "a batch is known by its query and number", "leave it out, and use name instead"
        )
    return chosen


def _checked_name(what: str, name: str) -> str:
    if not _NAME.fullmatch(name):
        raise OptionError(what, f"{name!r} is not a name", "use letters, digits, dot, dash and underscore")
    return name


def _remember(identity: str, run: str, batch_id: int) -> None:
    _written.pop(identity, None)
    _written[identity] = (run, batch_id)
    while len(_written) > _WRITERS_MAX:
        del _written[next(iter(_written))]
