"""Documents by Protobuf schemas, in Protobuf's own mapping to JSON, with the names of the schema's text.

A schema is read from its compiled form (a `FileDescriptorProto`), which registries give; nothing is compiled
here.
"""

import base64
import importlib
from collections.abc import Iterator
from typing import Any

from google.protobuf import json_format  # type: ignore[import-untyped]
from google.protobuf.descriptor_pb2 import FileDescriptorProto  # type: ignore[import-untyped]
from google.protobuf.descriptor_pool import DescriptorPool  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from google.protobuf.message_factory import GetMessageClass  # type: ignore[import-untyped]

from riverlog.cli.schemas.codecs import DoesNotFitError
from riverlog.cli.schemas.framing import NotFramedError, read_indexes, write_indexes
from riverlog.cli.schemas.registry import RegisteredSchema

_OWN_NAME = "the schema itself"
_PACKAGED = {"google/": "google.", "confluent/": "confluent_kafka.schema_registry.confluent."}
"""Files that come with packages, not from the registry."""


class ProtobufCodec:
    def __init__(self, schema: RegisteredSchema, message: str | None) -> None:
        self._pool = DescriptorPool()
        try:
            file = self._add(_OWN_NAME, schema)
        except (ValueError, TypeError, KeyError, DecodeError, ImportError) as error:
            raise DoesNotFitError(f"is no compiled Protobuf schema: {error}") from None
        self._names = dict(_messages(file.message_type, (), file.package))
        self._indexes = (0,) if message is None else self._find(message)

    def encode(self, document: Any) -> bytes:
        message = GetMessageClass(self._message(self._indexes))()
        try:
            json_format.ParseDict(document, message, descriptor_pool=self._pool)
        except json_format.ParseError as error:
            raise DoesNotFitError(str(error)) from None
        return write_indexes(self._indexes) + bytes(message.SerializeToString())

    def decode(self, payload: bytes) -> Any:
        indexes, data = read_indexes(payload)
        message = GetMessageClass(self._message(indexes))()
        try:
            message.ParseFromString(data)
            return json_format.MessageToDict(
                message, preserving_proto_field_name=True, descriptor_pool=self._pool
            )
        except (DecodeError, TypeError, ValueError) as error:
            raise DoesNotFitError(f"was not written by it: {error}") from None

    def _message(self, indexes: tuple[int, ...]) -> Any:
        name = self._names.get(indexes)
        if name is None:
            raise NotFramedError(f"is of a message that its schema does not have ({indexes})")
        return self._pool.FindMessageTypeByName(name)

    def _find(self, name: str) -> tuple[int, ...]:
        found = next((indexes for indexes, known in self._names.items() if known == name), None)
        if found is None:
            raise DoesNotFitError(f"has no message {name!r}, only {', '.join(self._names.values())}")
        return found

    def _add(self, name: str, schema: RegisteredSchema) -> Any:
        file = FileDescriptorProto.FromString(base64.b64decode(schema.text, validate=True))
        file.name = name
        for needed in file.dependency:
            self._add_needed(needed, schema)
        self._pool.Add(file)
        return file

    def _add_needed(self, needed: str, schema: RegisteredSchema) -> None:
        if needed in schema.references:
            self._add(needed, schema.references[needed])
            return
        path, package = next((each for each in _PACKAGED.items() if needed.startswith(each[0])), ("", ""))
        if not path:
            raise ValueError(f"it imports {needed}, which the registry does not name")
        module = needed.removeprefix(path).removesuffix(".proto").replace("/", ".")
        descriptor = importlib.import_module(f"{package}{module}_pb2").DESCRIPTOR
        for each in descriptor.dependencies:
            self._add_needed(each.name, schema)
        self._pool.AddSerializedFile(descriptor.serialized_pb)


def _messages(messages: Any, above: tuple[int, ...], prefix: str) -> Iterator[tuple[tuple[int, ...], str]]:
    """The full names of all messages, by the indexes on the way to them."""
    for index, message in enumerate(messages):
        name = f"{prefix}.{message.name}" if prefix else message.name
        yield (*above, index), name
        yield from _messages(message.nested_type, (*above, index), name)
