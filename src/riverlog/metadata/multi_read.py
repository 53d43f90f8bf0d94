"""Many questions to ZooKeeper in one request (multiRead, 3.6): what nodes hold, and which children they have.

kazoo lacks it, and asks for each node in a request of its own, which takes longer than the answer. Bytes and
values only; `kazoo_session` sends them.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple, TypeAlias

_HEADER: Final = struct.Struct("!i?i")
"""Of each part: the type, whether it is the end, an error."""
_LENGTH: Final = struct.Struct("!i")
_STAT: Final = struct.Struct("!qqqqiiiqiiq")
_GET_DATA: Final = 4
_GET_CHILDREN: Final = 8
_ERROR: Final = -1
_END: Final = _HEADER.pack(_ERROR, True, -1)
_UNWATCHED: Final = b"\0"
_BESIDE_PATH: Final = _HEADER.size + _LENGTH.size + len(_UNWATCHED)
QUESTIONS_MAX: Final = 500
BYTES_MAX: Final = 500_000
"""Of the questions in one request, of which ZooKeeper takes 1,048,575. A longer one is asked by itself."""


class Question(NamedTuple):
    path: str
    for_children: bool = False

    @property
    def size_bytes(self) -> int:
        return _BESIDE_PATH + len(self.path.encode())


class Content(NamedTuple):
    data: bytes
    version: int
    created: int
    changed: int
    owner: int
    """The session whose node it is; 0 for nobody's."""
    child_count: int


class Refused(NamedTuple):
    code: int


Answer: TypeAlias = Content | list[str] | Refused


def in_requests(paths: Sequence[str], chroot: str = "") -> Iterator[list[str]]:
    """As many at a time as can be asked for in one request, below `chroot`."""
    some, size, beside = list[str](), 0, _BESIDE_PATH + len(chroot.encode())
    for path in paths:
        added = beside + len(path.encode())
        if some and (len(some) == QUESTIONS_MAX or size + added > BYTES_MAX):
            yield some
            some, size = [], 0
        some.append(path)
        size += added
    if some:
        yield some


@dataclass(frozen=True, slots=True)
class MultiRead:
    """A request, as kazoo takes one."""

    questions: Sequence[Question]
    type: ClassVar[int] = 22

    def serialize(self) -> bytes:
        parts = bytearray()
        for path, for_children in self.questions:
            name = path.encode()
            parts += _HEADER.pack(_GET_CHILDREN if for_children else _GET_DATA, False, -1)
            parts += _LENGTH.pack(len(name)) + name + _UNWATCHED
        return bytes(parts + _END)

    @staticmethod
    def deserialize(buffer: bytes, offset: int) -> list[Answer]:
        """In the order of the questions."""
        answers: list[Answer] = []
        while True:
            kind, is_end, _ = _HEADER.unpack_from(buffer, offset)
            offset += _HEADER.size
            if is_end:
                return answers
            if kind == _GET_DATA:
                data, offset = _bytes_at(buffer, offset)
                stat = _STAT.unpack_from(buffer, offset)
                created, changed, _, _, version, _, _, owner, _, child_count, _ = stat
                offset += _STAT.size
                answers.append(Content(data, version, created, changed, owner, child_count))
            elif kind == _GET_CHILDREN:
                names, offset = _names_at(buffer, offset)
                answers.append(names)
            else:
                (code,) = _LENGTH.unpack_from(buffer, offset)
                offset += _LENGTH.size
                answers.append(Refused(code))


def _bytes_at(buffer: bytes, offset: int) -> tuple[bytes, int]:
    (length,) = _LENGTH.unpack_from(buffer, offset)
    start = offset + _LENGTH.size
    end = start + max(length, 0)
    return buffer[start:end], end


def _names_at(buffer: bytes, offset: int) -> tuple[list[str], int]:
    (count,) = _LENGTH.unpack_from(buffer, offset)
    offset += _LENGTH.size
    names: list[str] = []
    for _ in range(count):
        name, offset = _bytes_at(buffer, offset)
        names.append(name.decode())
    return names, offset
