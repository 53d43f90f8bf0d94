"""Options for Spark's text parsers: the caller's, and those that finding bad records depends on."""

from collections.abc import Mapping

CORRUPT = "__riverlog_corrupt"
_RESERVED = frozenset({"mode", "columnnameofcorruptrecord"})


def parser_options(given: Mapping[str, str]) -> dict[str, str]:
    if taken := sorted(name for name in given if name.lower() in _RESERVED):
        raise ValueError(
            f"The option {taken[0]} cannot be set: records that do not parse become dead letters."
        )
    return {**given, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
