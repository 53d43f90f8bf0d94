"""Letting go of a long message in pieces: to free a hundred thousand objects at once takes ten milliseconds.

For who has made the message, or is the only one who has read it: others may hold on to an array of it.
"""

from typing import Final

from riverlog.model.pieces import Pieces
from riverlog.wire.schema import Message

_AT_ONCE: Final = 500


def dissolve(message: Message) -> Pieces[None]:
    """Take apart a message that nobody needs any more: its arrays of structures are empty afterwards."""
    for field in type(message).FIELDS:
        if not field.array or field.struct is None:
            continue
        elements = getattr(message, field.name)
        if elements and any(inner.array and inner.struct for inner in field.struct.FIELDS):
            while elements:
                element = elements.pop()
                if isinstance(element, Message):
                    yield from dissolve(element)
                yield None
        while elements:
            del elements[-_AT_ONCE:]
            yield None
