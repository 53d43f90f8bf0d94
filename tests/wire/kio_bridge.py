"""Our messages as kio has them, and the bytes that it makes of them: a codec that we did not write."""

import datetime
import io
from dataclasses import fields
from importlib import import_module
from typing import Any

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.serial._introspect import classify_field
from kio.static.constants import EntityType

from riverlog.wire.schema import Message


def kio_class(cls: type[Message], version: int) -> Any:
    api = cls.__module__.rpartition(".")[2]
    for path in schema_name_map[api][version].values():
        module, name = path.split(":")
        if name == cls.__name__:
            return getattr(import_module(module), name)
    raise LookupError(f"kio has no {cls.__name__} v{version}")


def kio_versions(cls: type[Message]) -> set[int]:
    api = cls.__module__.rpartition(".")[2]
    return {
        v
        for v, paths in schema_name_map[api].items()
        if any(p.endswith(f":{cls.__name__}") for p in paths.values())
    }


def kio_versions_of_api(key: int) -> list[int]:
    return sorted(schema_name_map[api_key_map[key]])


def kio_headers(key: int, version: int) -> tuple[Any, Any]:
    """The classes of the headers before a request and a response of this version."""
    request: Any = load_request_schema(key, version)
    response: Any = load_response_schema(key, version)
    return request.__header_schema__, response.__header_schema__


def kio_request_header(header_version: int) -> Any:
    return import_module(f"kio.schema.request_header.v{header_version}.header").RequestHeader


def kio_message_names() -> set[str]:
    return {path.split(":")[1] for vs in schema_name_map.values() for p in vs.values() for path in p.values()}


def to_kio(message: Message, target: Any) -> Any:
    """The same values as an instance of `target`, kio's class for one version."""
    values = {}
    for field in fields(target):
        kind = field.metadata.get("kafka_type", "")
        is_time = kind.startswith(("timedelta", "datetime"))
        value = getattr(message, field.name + ("_ms" if is_time else ""))
        values[field.name] = _value_to_kio(value, kind, classify_field(field))
    return target(**values)


def _value_to_kio(value: Any, kind: str, classified: Any) -> Any:
    if isinstance(value, list):
        if not kind:
            return tuple(to_kio(element, classified.type_) for element in value)
        return tuple(value)
    if isinstance(value, Message):
        return to_kio(value, classified.type_)
    if kind == "error_code":
        return ErrorCode(value)
    if kind.startswith("timedelta"):
        return datetime.timedelta(milliseconds=value)
    if kind == "datetime_i64":
        return None if value == -1 else datetime.datetime.fromtimestamp(value / 1000, datetime.UTC)
    return bytes(value) if isinstance(value, memoryview) else value


def kio_encode(entity: Any) -> bytes:
    out = io.BytesIO()
    entity_writer(type(entity))(out, entity)
    return out.getvalue()


def kio_decode(target: Any, data: bytes) -> Any:
    entity, size = entity_reader(target)(data, 0)
    assert size == len(data)
    return entity


__all__ = [
    "EntityType",
    "kio_class",
    "kio_decode",
    "kio_encode",
    "kio_headers",
    "kio_message_names",
    "kio_request_header",
    "kio_versions",
    "kio_versions_of_api",
    "to_kio",
]
