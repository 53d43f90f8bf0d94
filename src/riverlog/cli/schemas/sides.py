"""Keys and values of a command's records by the schemas that were chosen for them."""

import json
from collections.abc import Callable
from typing import Any

from riverlog.cli.failures import CommandError
from riverlog.cli.schemas.choice import Choice, Choices, Side
from riverlog.cli.schemas.codecs import Codec, DoesNotFitError, codec_of
from riverlog.cli.schemas.framing import NotFramedError, frame, split_frame
from riverlog.cli.schemas.registry import RegisteredSchema, Registry

Encoder = Callable[[bytes], bytes]
"""From a document of JSON to a framed one. Raises `DoesNotFitError`."""
Decoder = Callable[[bytes], Any]
"""From a framed document to one of what JSON has. Raises `DoesNotFitError` or `NotFramedError`."""


def encoders(registry: Registry, choices: Choices, topic: str) -> dict[Side, Encoder]:
    """Asks for, or registers, each schema at once: what is wrong with it is told before any record."""
    return {side: _encoder(registry, choice, f"{topic}-{side}") for side, choice in choices.items()}


def decoders(registry: Registry, choices: Choices) -> dict[Side, Decoder]:
    for side, choice in choices.items():
        if choice.schema_id is not None or choice.file is not None or choice.message is not None:
            raise CommandError(
                f"--schema {side}={choice.format}… names a schema, but a record says itself which it has",
                remedy=f"--schema {side}={choice.format}",
            )
    return {side: _decoder(registry, choice) for side, choice in choices.items()}


def _encoder(registry: Registry, choice: Choice, subject: str) -> Encoder:
    schema = _chosen(registry, choice, subject)
    codec = codec_of(schema, choice.format, choice.message)

    def encode(text: bytes) -> bytes:
        try:
            document = json.loads(text)
        except ValueError as error:
            raise DoesNotFitError(f"is not JSON: {error}") from None
        try:
            return frame(schema.schema_id, codec.encode(document))
        except DoesNotFitError as error:
            raise DoesNotFitError(f"does not fit schema {schema.schema_id} ({subject}): {error}") from None

    return encode


def _chosen(registry: Registry, choice: Choice, subject: str) -> RegisteredSchema:
    if choice.schema_id is not None:
        return registry.schema(choice.schema_id, choice.format)
    if choice.file is not None:
        return registry.register(subject, choice.format, choice.file.read_text(encoding="utf-8"))
    return registry.newest(subject, choice.format)


def _decoder(registry: Registry, choice: Choice) -> Decoder:
    codecs: dict[int, Codec] = {}

    def decode(data: bytes) -> Any:
        schema_id, payload = split_frame(data)
        if schema_id not in codecs:
            codecs[schema_id] = codec_of(registry.schema(schema_id, choice.format), choice.format)
        try:
            return codecs[schema_id].decode(payload)
        except (DoesNotFitError, NotFramedError) as error:
            raise DoesNotFitError(f"names schema {schema_id}, but {error}") from None

    return decode
