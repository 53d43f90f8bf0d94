"""One stream into several topics, by condition, in one query: a batch reaches all its topics or none."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf


def split(
    df: DataFrame, routes: Mapping[str, str | Column], *, otherwise: str | None, every: bool = False
) -> DataFrame:
    """Set the column `topic`, which the sink follows, from conditions (Columns or SQL text).

    A row goes to the first topic whose condition holds, with `every` to each one. Rows for which none holds
    go to the topic `otherwise`; that they are left out must be said, with None. The column `partition`, if
    there is one, is dropped: it is the source's, and the sink would take it for the target's.
    """
    if not routes:
        raise ValueError("There are no routes. Give at least one topic and its condition.")
    conditions = {topic: _condition(given) for topic, given in routes.items()}
    topics = sf.array(*(sf.when(holds, sf.lit(topic)) for topic, holds in conditions.items()))
    chosen = sf.array_compact(topics)
    if otherwise is not None:
        chosen = sf.when(sf.size(chosen) == 0, sf.array(sf.lit(otherwise))).otherwise(chosen)
    rows = df.drop("partition")
    if every:
        return rows.withColumn("topic", sf.explode(chosen))
    rows = rows.withColumn("topic", sf.get(chosen, sf.lit(0)))
    return rows if otherwise is not None else rows.filter(sf.col("topic").isNotNull())


def _condition(given: str | Column) -> Column:
    return sf.expr(given) if isinstance(given, str) else given
