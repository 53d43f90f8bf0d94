"""A stream without its duplicates, remembering keys no longer than a watermark needs."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf


def dedup(
    df: DataFrame, keys: str | Sequence[str], *, time: str = "timestamp", within: str = "10 minutes"
) -> DataFrame:
    """Keep the first row of each key; a second one that comes `within` the time after it is dropped.

    Keys may lie inside structs (`decoded.order`). `time` is a top-level timestamp column and gets a watermark
    of `within`, so rows later than that are dropped too. State lives no longer than the watermark. It is for
    streams; a batch has `df.dropDuplicates`.
    """
    names = [keys] if isinstance(keys, str) else list(keys)
    if not names:
        raise ValueError("dedup needs at least one key column.")
    copies = {f"__riverlog_key_{position}": sf.col(name) for position, name in enumerate(names)}
    rows = df.withColumns(copies).withWatermark(time, within)
    return rows.dropDuplicatesWithinWatermark(list(copies)).drop(*copies)
