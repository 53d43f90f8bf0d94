"""Lengths of time as people read and write them."""

import re

from riverlog.cli.failures import usage

_WRITTEN = re.compile(r"([0-9]+)(ms|s|m|h|d)")
_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000))


def human_duration(duration_ms: int) -> str:
    """The two largest units: `2d 4h`, `3m 12s`, `850ms`."""
    if duration_ms < 1_000:
        return f"{duration_ms}ms"
    parts: list[str] = []
    rest = duration_ms
    for name, size in _UNITS:
        count, rest = divmod(rest, size)
        if count or parts:
            parts.append(f"{count}{name}")
    return " ".join(part for part in parts[:2] if not part.startswith("0"))


def parse_duration(text: str, option: str) -> int:
    """Milliseconds of `10m`, `1h`, `2d`, `30s` or `500ms`."""
    found = _WRITTEN.fullmatch(text)
    if found is None:
        raise usage(f"{option} {text!r} is no length of time", remedy=f"{option} 30s, 10m, 1h or 2d")
    sizes = {"ms": 1, **dict(_UNITS)}
    return int(found[1]) * sizes[found[2]]
