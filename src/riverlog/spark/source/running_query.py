"""Which streaming query a task works for."""

from typing import Final

from pyspark import TaskContext

_ID: Final = "sql.streaming.queryId"
_DESCRIPTION: Final = "spark.job.description"


def running_query() -> str | None:
    """Its name, or its id when it has none; None outside of a task of a stream."""
    context = TaskContext.get()
    query_id = None if context is None else context.getLocalProperty(_ID)
    if context is None or query_id is None:
        return None
    return name_in(context.getLocalProperty(_DESCRIPTION) or "", query_id) or query_id


def name_in(description: str, query_id: str) -> str | None:
    """Spark hands tasks the name only within the description of the job: a line of its own before the id."""
    name, separator, _ = description.partition(f"\nid = {query_id}\n")
    return name if separator and name else None
