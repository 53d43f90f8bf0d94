"""Dead letters: records that could not be used, with the reason and all that they came with.

As a DataFrame a dead letter is a row of `COLUMNS`. As a record of a topic it keeps the key, the value and
the headers of the original, byte for byte, so that it can be put back once the cause is mended; what else is
known goes into further headers, whose names begin with `dead-letter.`.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

ERROR = "error"
HEADERS_TYPE = "array<struct<key:string,value:binary>>"
_TYPES = {
    ERROR: "string",
    "key": "binary",
    "value": "binary",
    "headers": HEADERS_TYPE,
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
}
COLUMNS = tuple(_TYPES)
HEADER_PREFIX = "dead-letter."


def dead_letters(rows: DataFrame) -> DataFrame:
    """The columns of dead letters; those that the source was not asked for (headers) are null.

    A pattern stands for a column that may not be there: inside a flow of a pipeline Spark does not allow to
    ask for the columns.
    """
    return rows.select(
        *(
            sf.coalesce(rows.colRegex(f"`{name}`"), sf.lit(None).cast(kind)).alias(name)
            for name, kind in _TYPES.items()
        )
    )


def dead_letters_as_records(dead: DataFrame, topic: str | None = None) -> DataFrame:
    """Columns key, value, headers for the sink, and `topic` when it is given."""
    known = {
        "error": sf.col(ERROR),
        "topic": sf.col("topic"),
        "partition": sf.col("partition").cast("string"),
        "offset": sf.col("offset").cast("string"),
        "timestamp": sf.unix_millis("timestamp").cast("string"),
    }
    told = sf.array(*(_header(f"{HEADER_PREFIX}{name}", value) for name, value in known.items()))
    original = sf.coalesce(sf.col("headers"), sf.array().cast(HEADERS_TYPE))
    columns = [sf.col("key"), sf.col("value"), sf.concat(original, told).alias("headers")]
    if topic is not None:
        columns.append(sf.lit(topic).alias("topic"))
    return dead.select(*columns)


def _header(name: str, value: Column) -> Column:
    return sf.struct(sf.lit(name).alias("key"), value.cast("binary").alias("value"))
