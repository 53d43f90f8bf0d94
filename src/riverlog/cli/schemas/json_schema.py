"""Documents that are JSON already, held to a JSON schema when they are written."""

import json
from typing import Any

from jsonschema import SchemaError  # type: ignore[import-untyped]
from jsonschema.exceptions import best_match  # type: ignore[import-untyped]
from jsonschema.validators import validator_for  # type: ignore[import-untyped]
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT7

from riverlog.cli.schemas.codecs import DoesNotFitError
from riverlog.cli.schemas.registry import RegisteredSchema


class JsonCodec:
    def __init__(self, schema: RegisteredSchema) -> None:
        try:
            document = json.loads(schema.text)
            kind = validator_for(document)
            kind.check_schema(document)
        except (ValueError, SchemaError) as error:
            raise DoesNotFitError(f"is no JSON schema: {error}") from None
        self._validator = kind(document, registry=_registry(schema))

    def encode(self, document: Any) -> bytes:
        try:
            error = best_match(self._validator.iter_errors(document))
        except Unresolvable as unknown:
            raise DoesNotFitError(f"its schema refers to {unknown.ref!r}, which is unknown") from None
        if error is not None:
            place = "".join(
                f".{each}" if isinstance(each, str) else f"[{each}]" for each in error.absolute_path
            )
            raise DoesNotFitError(f"it{place}: {error.message}")
        return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()

    def decode(self, payload: bytes) -> Any:
        try:
            return json.loads(payload)
        except ValueError as error:
            raise DoesNotFitError(f"is no JSON: {error}") from None


def _registry(schema: RegisteredSchema) -> "Registry[Any]":
    found: Registry[Any] = Registry()
    for name, each in schema.references.items():
        contents = json.loads(each.text)
        resource = Resource.from_contents(contents, default_specification=DRAFT7)
        found = found.combine(_registry(each)).with_resource(name, resource)
    return found
