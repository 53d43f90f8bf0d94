"""Spark schemas between text and structure, and names for what is in them."""

from pyspark.sql.types import StructType


def as_struct(schema: str | StructType) -> StructType:
    if isinstance(schema, StructType):
        return schema
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
