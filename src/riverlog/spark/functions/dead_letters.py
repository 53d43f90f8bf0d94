"""Dead letters: records that could not be used, with the reason and all that they came with.

As a DataFrame a dead letter is a row of `COLUMNS`. As a record of a topic it keeps the key, the value and
the headers of the original, byte for byte, so that it can be put back once the cause is mended; what else is
known goes into further headers, whose names begin with `dead-letter.`.
"""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

ERROR = "error"
HEADERS_TYPE = "array<struct<key:string,value:binary>>"
COLUMNS = (ERROR, "key", "value", "headers", "topic", "partition", "offset", "timestamp")
HEADER_PREFIX = "dead-letter."
_FOUND = "__riverlog_found_"


def dead_letters(rows: DataFrame) -> DataFrame:
    """The columns of dead letters; headers are null if the source was not asked for them."""
    return select_with_optional(rows, COLUMNS, {"headers": HEADERS_TYPE})


def select_with_optional(df: DataFrame, names: Sequence[str], optional: Mapping[str, str]) -> DataFrame:
    """The columns `names`; of those some, with their types, need not be there and are null then.

    Whether one is there cannot be asked in a pipeline's query function. But Spark takes a name for a column
    of the input if it has one, and only else for an alias given earlier in the same select: here a null.
    """
    required = [name for name in names if name not in optional]
    defaults = [sf.lit(None).cast(kind).alias(name) for name, kind in optional.items()]
    found = [sf.col(name).alias(f"{_FOUND}{name}") for name in optional]
    selected = df.select(*required, *defaults, *found)
    return selected.select(
        *(sf.col(f"{_FOUND}{name}").alias(name) if name in optional else sf.col(name) for name in names)
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
