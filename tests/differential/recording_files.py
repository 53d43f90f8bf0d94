"""Reads and writes the committed recordings: JSON with a short value on one line, so that it can be read."""

from __future__ import annotations

import json
import pathlib
from typing import Any

Json = Any

DIRECTORY = pathlib.Path(__file__).parent / "recordings"
OF_BROKERS = DIRECTORY / "brokers"
"""Of the sequences for several brokers."""
WIDTH = 150


def save(api: str, sequences: dict[str, list[Json]], directory: pathlib.Path = DIRECTORY) -> None:
    directory.mkdir(exist_ok=True)
    path = directory / f"{_file_name(api)}.json"
    path.write_text(pretty({"api": api, "sequences": sequences}) + "\n")


def load(directory: pathlib.Path = DIRECTORY) -> dict[str, list[Json]]:
    """Every recorded sequence by its id, ``API/name``."""
    found: dict[str, list[Json]] = {}
    for path in sorted(directory.glob("*.json")):
        content = json.loads(path.read_text())
        for name, exchanges in content["sequences"].items():
            found[f"{content['api']}/{name}"] = exchanges
    return found


def remove_others(apis: set[str], directory: pathlib.Path = DIRECTORY) -> None:
    kept = {f"{_file_name(api)}.json" for api in apis}
    for path in directory.glob("*.json"):
        if path.name not in kept:
            path.unlink()


def pretty(value: Json, indent: int = 0, room: int = 0) -> str:
    """JSON in which whatever fits into a line stands on one."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or len(line) + indent + room <= WIDTH:
        return line
    pad = " " * (indent + 1)
    if isinstance(value, list):
        items = [pad + pretty(item, indent + 1, 1) for item in value]
        return "[\n" + ",\n".join(items) + "\n" + " " * indent + "]"
    items = []
    for key, item in value.items():
        name = json.dumps(key, ensure_ascii=False) + ": "
        items.append(pad + name + pretty(item, indent + 1, len(name) + 1))
    return "{\n" + ",\n".join(items) + "\n" + " " * indent + "}"


def _file_name(api: str) -> str:
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in api).lstrip("_")
