"""DDL text is read as Spark itself reads it, without asking Spark."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from riverlog.spark.functions.schema_text import as_ddl, as_struct

TEXTS = [
    "id BIGINT NOT NULL, region STRING, n: int",
    "a ARRAY<STRUCT<x: STRING NOT NULL, y DECIMAL(9, 2)>>, m MAP<STRING, ARRAY<INT>>",
    "struct<a: int, b: struct<c: boolean>>",
    "`a name` double COMMENT 'it is', `b``c` binary not null comment 'x, y'",
    "a tinyint, b smallint, c float, d date, e timestamp, f timestamp_ntz, g decimal, h dec(5), i real",
    "struct int, map string, t VARIANT",
]


@pytest.mark.parametrize("text", TEXTS)
def test_the_structure_is_the_one_that_spark_finds(spark: SparkSession, text: str) -> None:
    ours, theirs = as_struct(text), StructType.fromDDL(text)
    assert isinstance(theirs, StructType)

    assert [(f.name, f.dataType, f.nullable) for f in ours] == [
        (f.name, f.dataType, f.nullable) for f in theirs
    ]
    assert StructType.fromDDL(as_ddl(ours)).simpleString() == theirs.simpleString()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id BIGNT", "BIGNT.*bignt is no type"),
        ("id", "a type is missing"),
        ("", "a name is missing"),
        ("id INT,", "a name is missing"),
        ("id ARRAY<INT", "> is missing"),
        ("id INT NOT NUL", "null is missing"),
        ("id INT region STRING", "region STRING.*is not expected"),
        ("id INT; b INT", "; b INT.*cannot be read"),
    ],
)
def test_text_that_is_no_schema_is_refused_with_the_place(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        as_struct(text)
