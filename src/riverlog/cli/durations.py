"""Lengths of time as people read them."""

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
