"""What a message table is made of: `Field` rows and the `Message` base class.

A message class stands for all versions of one message. Its `FIELDS` say, per field, in which versions it is
there, in which it may be null, and in which it is a tagged field (KIP-482). The table is data: the codec
compiles it, the classes hold values only and check nothing.
"""

from typing import Any, ClassVar, Final, NamedTuple

from riverlog.model.disk import FileSlice

RecordData = bytes | memoryview | FileSlice
"""Record batches as they stand on the wire or on disk."""

DEFAULT: Final[Any] = type("Default", (), {"__repr__": lambda _: "DEFAULT"})()
"""Stands for a default that must be made for each message: an empty list or a structure."""

NEVER: Final = (1, 0)
"""A version range that holds no version."""

NOT_FLEXIBLE: Final = 1 << 15
"""First flexible version of a message that has none."""


class Field(NamedTuple):
    """One field of a message or of a structure inside it. Version ranges are inclusive at both ends."""

    name: str
    kind: str
    versions: tuple[int, int]
    nullable: tuple[int, int] = NEVER
    tag: int = -1
    tagged: tuple[int, int] = NEVER
    array: bool = False
    struct: "type[Message] | None" = None
    default: Any = 0

    def is_in(self, version: int) -> bool:
        return self.versions[0] <= version <= self.versions[1]

    def is_nullable_in(self, version: int) -> bool:
        return self.nullable[0] <= version <= self.nullable[1]

    def is_tagged_in(self, version: int) -> bool:
        return self.tagged[0] <= version <= self.tagged[1]


class Message:
    """A message or a structure of one, with equality and representation by field."""

    __slots__ = ()

    FIELDS: ClassVar[tuple[Field, ...]] = ()
    VERSIONS: ClassVar[tuple[int, int]] = NEVER
    FLEXIBLE: ClassVar[int] = NOT_FLEXIBLE

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, field.name) == getattr(other, field.name) for field in self.FIELDS)

    __hash__ = None  # type: ignore[assignment]  # messages are mutable

    def __repr__(self) -> str:
        values = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in self.FIELDS)
        return f"{type(self).__name__}({values})"
