"""Records that are read as JSON and sent by the schemas of a registry."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from riverlog.cli.records.json_form import InputRecord, RecordSyntaxError

Encoder = Callable[[bytes], bytes]


def by_schema(
    parse: Callable[[bytes], InputRecord], encoders: Mapping[str, Encoder]
) -> Callable[[bytes], InputRecord]:
    """A null stays one: it is a deletion, not a document. What does not fit is an error of its line."""

    def encoded(side: str, data: bytes | None) -> bytes | None:
        if data is None or side not in encoders:
            return data
        try:
            return encoders[side](data)
        except ValueError as error:
            raise RecordSyntaxError(
                f"the {side} {error}", remedy="it and what follows it were not sent"
            ) from None

    def parse_and_encode(line: bytes) -> InputRecord:
        record = parse(line)
        return replace(record, key=encoded("key", record.key), value=encoded("value", record.value))

    return parse_and_encode
