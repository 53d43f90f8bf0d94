"""Spark schemas between text and structure, and names for what is in them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType
from pyspark.sql.utils import is_remote


def as_struct(schema: str | StructType) -> StructType:
    if isinstance(schema, StructType):
        return schema
    with _outside_of_flow():
        parsed = StructType.fromDDL(schema)
    if not isinstance(parsed, StructType):
        raise ValueError(f"The schema {schema!r} is one type. Name the fields, as in 'id BIGINT NOT NULL'.")
    return parsed


def as_ddl(schema: StructType) -> str:
    """DDL text that Spark reads back, whatever the names are."""
    fields = (f"{quoted(field.name)} {field.dataType.simpleString()}" for field in schema.fields)
    return ", ".join(fields)


def quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


@contextmanager
def _outside_of_flow() -> Iterator[None]:
    """Lets the server be asked to parse text while a flow of a pipeline is being defined.

    Spark's pipelines refuse that as if it were an analysis of the flow; it looks at nothing but the text.
    """
    session: Any = SparkSession.getActiveSession() if is_remote() else None
    if session is None:
        yield
        return
    local = session.client.thread_local
    held = getattr(local, "user_context_extensions", [])
    local.user_context_extensions = []
    try:
        yield
    finally:
        local.user_context_extensions = held
