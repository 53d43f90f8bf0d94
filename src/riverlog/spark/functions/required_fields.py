"""What a schema requires and a parsed value lacks.

Spark's JSON and CSV parsers make every field nullable; a record without a field that the schema calls NOT
NULL would come out as a null. `first_violation` says in words what is missing, or is null.
"""

from collections.abc import Iterator

from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, DataType, MapType, StructType


def first_violation(column: Column, data_type: DataType, path: str = "") -> Column:
    found = list(_violations(column, data_type, path))
    return sf.coalesce(*found) if found else sf.lit(None).cast("string")


def _violations(column: Column, data_type: DataType, path: str) -> Iterator[Column]:
    if isinstance(data_type, StructType):
        for field in data_type.fields:
            child, name = column.getField(field.name), f"{path}{field.name}"
            if not field.nullable:
                is_missing = column.isNotNull() & child.isNull()
                yield sf.when(is_missing, sf.lit(f"the field {name} is missing or null"))
            yield from _violations(child, field.dataType, f"{name}.")
    elif isinstance(data_type, ArrayType):
        yield from _element_violations(column, data_type.elementType, data_type.containsNull, path)
    elif isinstance(data_type, MapType):
        values = sf.map_values(column)
        yield from _element_violations(values, data_type.valueType, data_type.valueContainsNull, path)


def _element_violations(
    elements: Column, data_type: DataType, may_be_null: bool, path: str
) -> Iterator[Column]:
    name = path.removesuffix(".")
    if not may_be_null:
        has_null = sf.exists(elements, lambda element: element.isNull())
        yield sf.when(has_null, sf.lit(f"the field {name} holds a null"))
    if _requires_something(data_type):
        reasons = sf.transform(elements, lambda element: first_violation(element, data_type, f"{name}[]."))
        yield sf.get(sf.filter(reasons, lambda reason: reason.isNotNull()), sf.lit(0))


def _requires_something(data_type: DataType) -> bool:
    if isinstance(data_type, StructType):
        return any(not field.nullable or _requires_something(field.dataType) for field in data_type.fields)
    if isinstance(data_type, ArrayType):
        return not data_type.containsNull or _requires_something(data_type.elementType)
    if isinstance(data_type, MapType):
        return not data_type.valueContainsNull or _requires_something(data_type.valueType)
    return False
