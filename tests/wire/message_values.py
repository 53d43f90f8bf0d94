"""Random messages made from the tables, biased towards the values at which encodings change."""

from importlib import import_module
from pkgutil import iter_modules
from random import Random
from typing import Any
from uuid import UUID

import riverlog.wire.messages
from riverlog.model.disk import FileSlice
from riverlog.wire.apis import APIS, Api, ApiKey
from riverlog.wire.schema import Field, Message
from scripts.generate_messages import MESSAGES

RANGES = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
}
TEXTS = ("", "a", "orders", "Grüße", "\u20ac\U0001f600", "t" * 126, "t" * 127, "t" * 128, "k" * 300)


def listed_apis() -> dict[ApiKey, Api]:
    """Those whose messages are generated."""
    return {key: api for key, api in APIS.items() if key.name.lower() in MESSAGES}


def message_classes() -> list[type[Message]]:
    """Every message that is not a structure inside another."""
    found: list[type[Message]] = []
    for module_info in iter_modules(riverlog.wire.messages.__path__):
        module = import_module(f"riverlog.wire.messages.{module_info.name}")
        classes = [c for c in vars(module).values() if isinstance(c, type) and issubclass(c, Message)]
        nested = {field.struct for c in classes for field in c.FIELDS}
        found += [c for c in classes if c is not Message and c not in nested]
    return found


def versions_of(cls: type[Message]) -> range:
    return range(cls.VERSIONS[0], cls.VERSIONS[1] + 1)


def random_message(cls: type[Message], version: int, random: Random) -> Any:
    """A message whose fields are set as far as the version has them."""
    return cls(
        **{
            field.name: random_field(field, version, random)
            for field in cls.FIELDS
            if field.is_in(version) and not (field.is_tagged_in(version) and random.random() < 0.4)
        }
    )


def random_field(field: Field, version: int, random: Random) -> Any:
    if field.is_nullable_in(version) and random.random() < 0.25:
        return None
    if not field.array:
        return random_value(field, version, random)
    if field.kind in RANGES and random.random() < 0.05:
        count = random.choice((127, 128, 300))
    else:
        count = random.choice((0, 1, 1, 2, 3))
    return [random_value(field, version, random) for _ in range(count)]


def random_value(field: Field, version: int, random: Random) -> Any:
    if field.struct is not None:
        return random_message(field.struct, version, random)
    match field.kind:
        case "string":
            return random.choice(TEXTS)
        case "bytes" | "records":
            return random.randbytes(random.choice((0, 1, 20, 127, 128, 200)))
        case "uuid":
            return None if random.random() < 0.2 else UUID(int=random.getrandbits(128) or 1)
        case "bool":
            return random.random() < 0.5
        case "float64":
            return random.uniform(-1e9, 1e9)
        case kind:
            return random_integer(field.name, kind, random)


def random_integer(name: str, kind: str, random: Random) -> int:
    low, high = RANGES[kind]
    if name.endswith("error_code"):
        return random.randint(-1, 100)
    if name.endswith("_ms") and kind == "int64":
        return random.randint(0, 4_000_000_000) * 1000  # what kio's points in time can hold
    return random.choice((low, -1 if low else 0, 0, 1, high, random.randint(low, high)))


class _NoFile:
    """Stands where an open file does; a codec has no business to touch it."""

    path = "nowhere"


def slice_of(length: int) -> FileSlice:
    return FileSlice(_NoFile(), 100, length)  # type: ignore[arg-type]
