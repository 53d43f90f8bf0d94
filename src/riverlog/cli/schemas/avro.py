"""Documents by Avro schemas, as plain JSON.

Bytes and fixed stand as text with a character for each byte, as in Avro's own JSON form. Of a union the first
branch that fits is taken, without its name being written. Logical types are shown as what they are kept as (a
time as its number), so that what was read can be written again and is the same.
"""

import io
import json
from typing import Any

from fastavro import parse_schema, schemaless_reader, schemaless_writer
from fastavro.schema import SchemaParseException
from fastavro.validation import ValidationError, validate

from riverlog.cli.schemas.codecs import DoesNotFitError
from riverlog.cli.schemas.registry import RegisteredSchema

_RECORDS = ("record", "error")


class AvroCodec:
    def __init__(self, schema: RegisteredSchema) -> None:
        self._named: dict[str, Any] = {}
        try:
            self._schema = self._parse(schema)
        except (SchemaParseException, ValueError, KeyError) as error:
            raise DoesNotFitError(f"is no Avro schema: {error}") from None

    def encode(self, document: Any) -> bytes:
        fitting = self._fit(document, self._schema, "it")
        out = io.BytesIO()
        try:
            validate(fitting, self._schema)
            schemaless_writer(out, self._schema, fitting)
        except ValidationError as error:
            raise DoesNotFitError("; ".join(map(str, error.errors))) from None
        except (ValueError, TypeError, OverflowError) as error:
            raise DoesNotFitError(str(error)) from None
        return out.getvalue()

    def decode(self, payload: bytes) -> Any:
        stream = io.BytesIO(payload)
        try:
            document = schemaless_reader(stream, self._schema, None)
        except (EOFError, ValueError, IndexError, KeyError, TypeError, OverflowError, MemoryError) as error:
            raise DoesNotFitError(f"was not written by it: {error or type(error).__name__}") from None
        if left := len(payload) - stream.tell():
            raise DoesNotFitError(f"was not written by it: {left} bytes are left over")
        return _as_json(document)

    def _parse(self, schema: RegisteredSchema) -> Any:
        for each in schema.references.values():
            self._parse(each)
        return parse_schema(_without_logical_types(json.loads(schema.text)), named_schemas=self._named)

    def _fit(self, value: Any, schema: Any, where: str) -> Any:
        """The value with bytes for text where the schema has bytes."""
        if isinstance(schema, list):
            return self._fit_one_of(value, schema, where)
        kind = schema["type"] if isinstance(schema, dict) else schema
        if isinstance(kind, str) and kind in self._named:
            return self._fit(value, self._named[kind], where)
        if isinstance(kind, dict | list):
            return self._fit(value, kind, where)
        if kind in ("bytes", "fixed"):
            return _bytes(value, where)
        if kind in _RECORDS:
            return self._fit_record(value, schema, where)
        if kind == "array" and isinstance(value, list):
            return [self._fit(each, schema["items"], f"{where}[{n}]") for n, each in enumerate(value)]
        if kind == "map" and isinstance(value, dict):
            return {
                name: self._fit(each, schema["values"], f"{where}.{name}") for name, each in value.items()
            }
        return value

    def _fit_record(self, value: Any, schema: dict[str, Any], where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise DoesNotFitError(f"{where} is no object, as {schema['name']} is")
        fields = {field["name"]: field for field in schema["fields"]}
        if unknown := sorted(value.keys() - fields.keys()):
            raise DoesNotFitError(f"{where} has {unknown[0]!r}, which {schema['name']} does not have")
        for name, field in fields.items():
            if name not in value and "default" not in field:
                raise DoesNotFitError(f"{where} has no {name!r}")
        return {
            name: self._fit(each, fields[name]["type"], f"{where}.{name}") for name, each in value.items()
        }

    def _fit_one_of(self, value: Any, branches: list[Any], where: str) -> Any:
        reasons = []
        for branch in branches:
            chosen = self._named.get(branch, branch) if isinstance(branch, str) else branch
            try:
                fitting = self._fit(value, chosen, where)
                validate(fitting, chosen)
            except DoesNotFitError as error:
                reasons.append(str(error))
            except ValidationError as error:
                reasons.append("; ".join(map(str, error.errors)))
            else:
                return fitting
        raise DoesNotFitError(
            f"{where} fits no branch of a union: {reasons[-1] if reasons else 'it is empty'}"
        )


def _bytes(value: Any, where: str) -> bytes:
    try:
        return str(value).encode("latin-1") if isinstance(value, str) else bytes(value)
    except (UnicodeEncodeError, TypeError, ValueError):
        raise DoesNotFitError(f"{where} is no text with a character for each byte") from None


def _as_json(value: Any) -> Any:
    match value:
        case bytes():
            return value.decode("latin-1")
        case dict():
            return {name: _as_json(each) for name, each in value.items()}
        case list() | tuple():
            return [_as_json(each) for each in value]
        case _:
            return value


def _without_logical_types(schema: Any) -> Any:
    match schema:
        case dict():
            return {
                name: each if name == "default" else _without_logical_types(each)
                for name, each in schema.items()
                if name != "logicalType"
            }
        case list():
            return [_without_logical_types(each) for each in schema]
        case _:
            return schema
