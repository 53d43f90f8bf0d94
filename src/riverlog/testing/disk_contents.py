"""What is on a simulated disk: files and directories, each with what was synced and what came since.

`tear` takes the power away: of the writes to a file that were not synced some survive, some are lost, some
are torn; of the changes to a directory only the first few survive. Not here: paths, failures, room
(`simulated_disk`).
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

_PAGE_BYTES: Final = 4096


@dataclass(slots=True)
class _Write:
    """`size` is that of the file before it, `over` what it replaced."""

    position: int
    data: bytes
    size: int
    over: bytes


@dataclass(slots=True)
class _Truncate:
    """`cut` is what was behind the new end, `before` the size until then."""

    size: int
    before: int
    cut: bytes


@dataclass(slots=True)
class Losses:
    """What a power cut has taken from the files, or left half."""

    lost_writes: int = 0
    torn_writes: int = 0
    lost_bytes: int = 0
    lost_names: int = 0


@dataclass(slots=True, eq=False)
class Inode:
    content: bytearray = field(default_factory=bytearray)
    unsynced: list[_Write | _Truncate] = field(default_factory=list)
    modified_ms: int = 0
    cold_end: int = 0
    """Below here only the pages in `warm_pages` are in memory."""
    warm_pages: set[int] = field(default_factory=set)

    def write(self, position: int, data: bytes) -> None:
        over = bytes(self.content[position : position + len(data)])
        self.unsynced.append(_Write(position, data, len(self.content), over))
        _put(self.content, position, data)

    def set_size(self, size: int) -> None:
        self.unsynced.append(_Truncate(size, len(self.content), bytes(self.content[size:])))
        _set_size(self.content, size)

    def tear(self, chance: random.Random, losses: Losses) -> None:
        """What is left after the power went: what was synced, and of the rest what the disk had got to."""
        content, changes = self.content, self.unsynced
        for change in reversed(changes):
            _undo(content, change)
        self.unsynced = []
        for change in changes:
            fate = chance.random()
            if fate < 0.3:
                if isinstance(change, _Write):
                    losses.lost_writes += 1
                    losses.lost_bytes += len(change.data)
                continue
            match change:
                case _Truncate(size):
                    _set_size(content, size)
                case _Write(position, data):
                    kept = data if fate < 0.8 else data[: chance.randrange(len(data) + 1)]
                    if len(kept) < len(data):
                        losses.torn_writes += 1
                        losses.lost_bytes += len(data) - len(kept)
                    _put(content, position, kept)

    def is_warm(self, position: int, length: int) -> bool:
        if position >= self.cold_end:
            return True
        end = min(position + length, self.cold_end) - 1
        return position // _PAGE_BYTES in self.warm_pages and end // _PAGE_BYTES in self.warm_pages

    def bring_in(self, position: int, length: int) -> None:
        end = min(position + length, self.cold_end)
        self.warm_pages.update(range(position // _PAGE_BYTES, (end - 1) // _PAGE_BYTES + 1))


@dataclass(slots=True, eq=False)
class Directory:
    """Names and what they stand for. A change to several names at once, a rename, is kept or lost as one."""

    entries: "dict[str, Inode | Directory]" = field(default_factory=dict)
    durable: "dict[str, Inode | Directory]" = field(default_factory=dict)
    unsynced: "list[dict[str, Inode | Directory | None]]" = field(default_factory=list)

    def change(self, names: "dict[str, Inode | Directory | None]") -> None:
        """None takes a name away."""
        self.unsynced.append(names)
        _apply(names, self.entries)

    def sync(self) -> None:
        for names in self.unsynced:
            _apply(names, self.durable)
        self.unsynced = []

    def tear(self, chance: random.Random, losses: Losses) -> None:
        """What is left after the power went: what was synced, and the first few of the changes since."""
        survivors = chance.randrange(len(self.unsynced) + 1)
        losses.lost_names += len(self.unsynced) - survivors
        del self.unsynced[survivors:]
        self.sync()
        self.entries = dict(self.durable)

    def walk(self) -> "Iterator[Inode | Directory]":
        yield self
        for entry in self.entries.values():
            if isinstance(entry, Directory):
                yield from entry.walk()
            else:
                yield entry


def _apply(changes: dict[str, Inode | Directory | None], entries: dict[str, Inode | Directory]) -> None:
    for name, entry in changes.items():
        if entry is None:
            entries.pop(name, None)
        else:
            entries[name] = entry


def _set_size(content: bytearray, size: int) -> None:
    if size < len(content):
        del content[size:]
    else:
        content.extend(bytes(size - len(content)))


def _undo(content: bytearray, change: _Write | _Truncate) -> None:
    match change:
        case _Truncate(before=before, cut=cut):
            _set_size(content, before - len(cut))
            content += cut
        case _Write(position, _, size, over):
            _set_size(content, size)
            content[position : position + len(over)] = over


def _put(content: bytearray, position: int, data: bytes) -> None:
    if position > len(content):
        content.extend(bytes(position - len(content)))
    content[position : position + len(data)] = data
