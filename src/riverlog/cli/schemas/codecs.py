"""How documents are written and read by one schema: what the three formats have in common."""

from collections.abc import Callable
from typing import Any, Protocol

from riverlog.cli.failures import CommandError
from riverlog.cli.schemas.choice import Format
from riverlog.cli.schemas.registry import RegisteredSchema, needs_extra


class DoesNotFitError(ValueError):
    """A document that a schema does not allow, or bytes that were not written by it; the message says why."""


class Codec(Protocol):
    def encode(self, document: Any) -> bytes:
        """What follows the frame's head. Raises `DoesNotFitError`."""
        ...

    def decode(self, payload: bytes) -> Any:
        """The document, of what JSON has. Raises `DoesNotFitError` or `NotFramedError`."""
        ...


def codec_of(schema: RegisteredSchema, wanted: Format, message: str | None = None) -> Codec:
    """Raises `CommandError` for a schema that is broken or of another format."""
    if schema.format != wanted:
        raise CommandError(
            f"schema {schema.schema_id} is {schema.format}, not {wanted}",
            remedy=f"--schema …={schema.format}" if schema.format in tuple(Format) else "",
        )
    try:
        return _maker(wanted, message)(schema)
    except ImportError as error:
        raise needs_extra(error) from None
    except DoesNotFitError as error:
        raise CommandError(f"schema {schema.schema_id} {error}") from None


def _maker(wanted: Format, message: str | None) -> Callable[[RegisteredSchema], Codec]:
    match wanted:
        case Format.AVRO:
            from riverlog.cli.schemas.avro import AvroCodec

            return AvroCodec
        case Format.JSON:
            from riverlog.cli.schemas.json_schema import JsonCodec

            return JsonCodec
        case Format.PROTOBUF:
            from riverlog.cli.schemas.protobuf import ProtobufCodec

            return lambda schema: ProtobufCodec(schema, message)
