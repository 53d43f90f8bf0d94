"""Requests and replies as plain JSON values, encoded and decoded by kio.

kio is used here, and nowhere in the broker, so that a mistake in Riverlog's own codec cannot hide itself.
A message is a dict of kio's field names; fields of kio's duration and date types end in ``_ms`` and hold
integers; error codes are names in capitals; ids are strings; bytes are ``{"$hex": ...}``.

A request may be written once for all versions: fields that a version lacks are left out, fields that are
not given take the schema's default. A name that no version of the API knows is an error.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import io
import struct
import types
import typing
import uuid
from collections.abc import Mapping
from typing import Any

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer

Json = Any

NO_UUID = uuid.UUID(int=0)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def api_key(api: str) -> int:
    return _keys()[api]


def api_name(key: int) -> str:
    return "".join(part.capitalize() for part in api_key_map[key].split("_"))


def versions_known(api: str) -> list[int]:
    return sorted(schema_name_map[api_key_map[api_key(api)]])


def is_flexible(api: str, version: int) -> bool:
    """Whether the version has tagged fields, and so a header that ends in some."""
    if version not in versions_known(api):
        return False
    schema: Any = load_request_schema(api_key(api), version)
    return bool(schema.__flexible__)


def encode_request(
    api: str, version: int, fields: Mapping[str, Json], correlation_id: int, client_id: str | None
) -> bytes:
    """The request's payload: header and body, without the four bytes of size in front."""
    schema: Any = load_request_schema(api_key(api), version)
    unknown = _given_paths(fields) - _known_paths(api)
    if unknown:
        raise ValueError(f"no version of {api} has {sorted(unknown)}")
    header_schema: Any = schema.__header_schema__
    header = {"request_api_key": api_key(api), "request_api_version": version}
    header |= {"correlation_id": correlation_id}
    known = {field.name for field in dataclasses.fields(header_schema)}
    if "client_id" in known:
        header |= {"client_id": client_id}  # type: ignore[dict-item]
    buffer = io.BytesIO()
    entity_writer(header_schema)(buffer, header_schema(**header))
    entity_writer(schema)(buffer, _entity(schema, fields))
    return buffer.getvalue()


def fields_sent(api: str, version: int, fields: Mapping[str, Json]) -> Json:
    """What is left of the fields in this version: what the recording shows."""
    schema: Any = load_request_schema(api_key(api), version)
    return _in_version(schema, fields)


def decode_reply(api: str, version: int, payload: bytes) -> Json:
    """The body of a reply; bytes after its end are reported as ``$trailing``."""
    schema: Any = load_response_schema(api_key(api), version)
    data = bytes(payload)
    _, end = _read(schema.__header_schema__, data, 0)
    body, end = _read(schema, data, end)
    fields = _plain(schema, body)
    if end != len(data):
        fields["$trailing"] = data[end:].hex()
    return fields


def correlation_of(payload: bytes) -> int:
    (correlation_id,) = struct.unpack_from(">i", payload)
    return int(correlation_id)


@functools.cache
def _keys() -> dict[str, int]:
    return {api_name(key): key for key in api_key_map}


def _read(schema: Any, data: bytes, start: int) -> tuple[Any, int]:
    entity, size = entity_reader(schema)(data, start)
    return entity, start + size


@functools.cache
def _known_paths(api: str) -> frozenset[str]:
    paths: set[str] = set()
    for version in versions_known(api):
        _collect_paths(load_request_schema(api_key(api), version), "", paths)
    return frozenset(paths)


def _collect_paths(schema: Any, prefix: str, paths: set[str]) -> None:
    for name, shape in _shapes(schema).items():
        paths.add(prefix + name)
        if shape.entity is not None:
            _collect_paths(shape.entity, f"{prefix}{name}.", paths)


def _given_paths(value: Json, prefix: str = "") -> set[str]:
    paths: set[str] = set()
    if isinstance(value, Mapping) and not any(key.startswith("$") for key in value):
        for name, inner in value.items():
            paths |= {prefix + name} | _given_paths(inner, f"{prefix}{name}.")
    elif isinstance(value, list | tuple):
        for inner in value:
            paths |= _given_paths(inner, prefix)
    return paths


@dataclasses.dataclass(frozen=True, slots=True)
class Shape:
    """How one field of one version looks: its kio name and type, and what it is made of."""

    attribute: str
    kafka_type: str
    array: bool
    optional: bool
    entity: Any
    default: Any


@functools.cache
def _shapes(schema: Any) -> dict[str, Shape]:
    hints = typing.get_type_hints(schema)
    shapes: dict[str, Shape] = {}
    for field in dataclasses.fields(schema):
        hint, optional = _without_none(hints[field.name])
        array = typing.get_origin(hint) is tuple
        inner = typing.get_args(hint)[0] if array else hint
        entity = inner if dataclasses.is_dataclass(inner) else None
        kafka_type = field.metadata.get("kafka_type", "struct")
        timed = kafka_type.startswith(("timedelta", "datetime"))
        name = field.name + "_ms" if timed else field.name
        shapes[name] = Shape(field.name, kafka_type, array, optional, entity, field.default)
    return shapes


def _without_none(hint: Any) -> tuple[Any, bool]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        inner = [argument for argument in typing.get_args(hint) if argument is not type(None)]
        return inner[0], True
    return hint, False


def _in_version(schema: Any, fields: Mapping[str, Json]) -> Json:
    kept: dict[str, Json] = {}
    for name, shape in _shapes(schema).items():
        if name not in fields:
            continue
        value = fields[name]
        if shape.entity is None or value is None:
            kept[name] = value
        elif shape.array:
            kept[name] = [_in_version(shape.entity, item) for item in value]
        else:
            kept[name] = _in_version(shape.entity, value)
    return kept


def _entity(schema: Any, fields: Mapping[str, Json]) -> Any:
    values: dict[str, Any] = {}
    for name, shape in _shapes(schema).items():
        if name in fields:
            values[shape.attribute] = _native(shape, fields[name])
        elif shape.default is dataclasses.MISSING:
            values[shape.attribute] = _zero(shape)
    return schema(**values)


def _native(shape: Shape, value: Json) -> Any:
    if value is None:
        return None
    if shape.array:
        return tuple(_native_single(shape, item) for item in value)
    return _native_single(shape, value)


def _native_single(shape: Shape, value: Json) -> Any:
    if shape.entity is not None:
        return _entity(shape.entity, value)
    if value is None:
        return None
    match shape.kafka_type:
        case "uuid":
            return uuid.UUID(value)
        case "bytes" | "records":
            return bytes.fromhex(value["$hex"])
        case "timedelta_i32" | "timedelta_i64":
            return datetime.timedelta(milliseconds=value)
        case "datetime_i64":
            return _EPOCH + datetime.timedelta(milliseconds=value)
        case _:
            return value


def _zero(shape: Shape) -> Any:
    if shape.array:
        return ()
    if shape.entity is not None:
        return None if shape.optional else _entity(shape.entity, {})
    if shape.optional or shape.kafka_type == "uuid":
        return None
    match shape.kafka_type:
        case "string":
            return ""
        case "bytes" | "records":
            return b""
        case "bool":
            return False
        case "timedelta_i32" | "timedelta_i64":
            return datetime.timedelta()
        case _:
            return 0


def _plain(schema: Any, entity: Any) -> dict[str, Json]:
    return {
        name: _plain_value(shape, getattr(entity, shape.attribute)) for name, shape in _shapes(schema).items()
    }


def _plain_value(shape: Shape, value: Any) -> Json:
    if value is None:
        return None
    if shape.array:
        return [_plain_single(shape, item) for item in value]
    return _plain_single(shape, value)


def _plain_single(shape: Shape, value: Any) -> Json:
    if shape.entity is not None:
        return _plain(shape.entity, value)
    match value:
        case ErrorCode():
            return value.name.upper()
        case uuid.UUID():
            return None if value == NO_UUID else str(value)
        case bytes():
            return {"$hex": value.hex()}
        case datetime.timedelta():
            return round(value.total_seconds() * 1000)
        case datetime.datetime():
            return round((value - _EPOCH).total_seconds() * 1000)
        case _:
            return value
