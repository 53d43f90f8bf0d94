"""What a definition reads, found in its plan before Spark analyses it.

A Connect DataFrame is a protobuf tree; nothing is asked of a server. Any message of the tree may hold another
plan, so the walk is over all of them and not over the known kinds of relation.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class TableRead:
    """Of a dataset by name."""

    name: str
    is_streaming: bool


@dataclass(frozen=True, slots=True)
class SourceRead:
    """By format and options."""

    format: str
    options: Mapping[str, str]
    is_streaming: bool


@dataclass(frozen=True, slots=True)
class Reads:
    tables: tuple[TableRead, ...]
    sources: tuple[SourceRead, ...]
    has_sql: bool
    """Whether a query in SQL text is inside, which hides what it reads."""


def reads_of(frame: Any) -> Reads:
    tables: dict[TableRead, None] = {}
    sources: list[SourceRead] = []
    has_sql = False
    for message in _messages(frame._plan.to_proto(frame._session.client)):
        match message.DESCRIPTOR.name:
            case "Read" if message.HasField("named_table"):
                tables[TableRead(_plain(message.named_table.unparsed_identifier), message.is_streaming)] = (
                    None
                )
            case "Read" if message.HasField("data_source"):
                source = message.data_source
                found = SourceRead(source.format, dict(source.options), message.is_streaming)
                if found not in sources:
                    sources.append(found)
            case "SQL" | "SqlCommand":
                has_sql = True
    return Reads(tuple(tables), tuple(sources), has_sql)


def _messages(message: Any) -> Iterator[Any]:
    yield message
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            if field.message_type.fields_by_name["value"].message_type is not None:
                for each in value.values():
                    yield from _messages(each)
        elif hasattr(value, "DESCRIPTOR"):
            yield from _messages(value)
        else:
            for each in value:
                yield from _messages(each)


def _plain(identifier: str) -> str:
    return identifier.replace("`", "")
