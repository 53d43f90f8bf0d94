"""Which schemas a command is to use, as people write them: `value=avro`, `value=protobuf:7#shop.Order`.

SIDE=FORMAT            the schema that a record names; to produce, the newest one of the subject TOPIC-SIDE
SIDE=FORMAT:ID         to produce, the schema of this number
SIDE=FORMAT:FILE       to produce, the schema in this file, which is registered for the subject
SIDE=protobuf…#NAME    to produce, this message of the schema; otherwise its first one
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from riverlog.cli.failures import usage

_SYNTAX = "--schema key=FORMAT or value=FORMAT, where FORMAT is avro, json or protobuf"


class Side(StrEnum):
    KEY = "key"
    VALUE = "value"


class Format(StrEnum):
    AVRO = "avro"
    JSON = "json"
    PROTOBUF = "protobuf"


@dataclass(frozen=True, slots=True)
class Choice:
    format: Format
    schema_id: int | None = None
    file: Path | None = None
    message: str | None = None


Choices = dict[Side, Choice]


def parse_choices(texts: Iterable[str]) -> Choices:
    choices: Choices = {}
    for text in texts:
        name, equals, rest = text.partition("=")
        if not equals or name not in tuple(Side):
            raise usage(f"--schema {text!r} says neither key= nor value=", remedy=_SYNTAX)
        if Side(name) in choices:
            raise usage(f"--schema says twice what the {name} is")
        choices[Side(name)] = _parse(rest, text)
    return choices


def _parse(rest: str, text: str) -> Choice:
    rest, sign, message = rest.partition("#")
    name, _, which = rest.partition(":")
    if name not in tuple(Format):
        raise usage(f"--schema {text!r} has no format {name!r}", remedy=_SYNTAX)
    if sign and (name != Format.PROTOBUF or not message):
        raise usage(f"--schema {text!r}: only protobuf has messages, as in value=protobuf#shop.Order")
    schema_id = int(which) if which.isdecimal() else None
    file = Path(which) if which and schema_id is None else None
    if file is not None and not file.is_file():
        raise usage(
            f"--schema {text!r}: there is no file {which}", remedy="name a file or the number of a schema"
        )
    return Choice(Format(name), schema_id, file, message or None)
