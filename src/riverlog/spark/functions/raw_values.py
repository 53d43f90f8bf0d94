"""Values as they are: bytes, or text when an encoding is given."""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from riverlog.spark.functions.dead_letters import ERROR


def with_raw(df: DataFrame, into: str, options: Mapping[str, str]) -> DataFrame:
    """The columns `into` (binary, or string with the option encoding) and `error` added."""
    encoding = options.get("encoding")
    if unknown := sorted(set(options) - {"encoding"}):
        raise ValueError(f"The format raw has no option {unknown[0]}. It knows: encoding.")
    if encoding is None:
        return df.withColumns({into: sf.col("value"), ERROR: sf.lit(None).cast("string")})
    if encoding.lower() not in ("utf-8", "utf8"):
        raise ValueError(f"The encoding {encoding!r} is not offered for the format raw. Use utf-8.")
    text = sf.col("value").cast("string")
    is_text = sf.is_valid_utf8(text)
    error = sf.when(~is_text, sf.lit("the value is not UTF-8"))
    return df.withColumns({into: sf.when(is_text, text), ERROR: error})
