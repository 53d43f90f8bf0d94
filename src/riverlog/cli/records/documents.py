"""Keys and values of records as documents, by the schemas of a registry: what `consume` prints of them.

Without a schema a key or value is its bytes.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from riverlog.cli.failures import CommandError
from riverlog.cli.records.json_form import compact_json, encode_bytes
from riverlog.cli.schemas.choice import Side

if TYPE_CHECKING:
    from confluent_kafka import Message

Decoder = Callable[[bytes], Any]
_NOT_BY_SCHEMA = "--from with a later offset reads on behind it; without --schema its bytes are shown"


class Documents:
    def __init__(self, decoders: Mapping[Side, Decoder]) -> None:
        self._decoders = decoders

    def text(self, side: Side, message: "Message") -> bytes | None:
        data = _bytes_of(side, message)
        return (
            data if data is None or side not in self._decoders else compact_json(self._decode(side, message))
        )

    def members(self, side: Side, message: "Message") -> dict[str, Any]:
        """As members of a JSON object."""
        data = _bytes_of(side, message)
        if data is None or side not in self._decoders:
            return dict(encode_bytes(side, data))
        return {side.value: self._decode(side, message)}

    def _decode(self, side: Side, message: "Message") -> Any:
        place = f"{message.topic()}-{message.partition()} at offset {message.offset()}"
        try:
            return self._decoders[side](_bytes_of(side, message) or b"")
        except ValueError as error:
            raise CommandError(f"{place}: the {side} {error}", remedy=_NOT_BY_SCHEMA) from None
        except CommandError as error:
            error.message = f"{place}: {error.message}"
            error.remedy = error.remedy or _NOT_BY_SCHEMA
            raise


def _bytes_of(side: Side, message: "Message") -> bytes | None:
    return message.key() if side is Side.KEY else message.value()
