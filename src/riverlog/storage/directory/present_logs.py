"""Which partitions have a directory here, and what is to be known of each before its log is opened.

One that was made since the start has no files yet; one that is unrecovered has to be read through when it is
opened, because nobody closed it. Both are among those that are known. Not here: the logs themselves.
"""

from collections.abc import Collection, Iterator

from riverlog.model.ids import TopicPartition
from riverlog.storage.files.checkpoint import partition_of


class PresentLogs:
    __slots__ = ("_created", "_known", "_unrecovered")

    def __init__(self, known: Collection[str], unrecovered: Collection[str]) -> None:
        self._known = set(known)
        self._created: set[str] = set()
        self._unrecovered = self._known.intersection(unrecovered)

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def partitions(self) -> Iterator[TopicPartition]:
        """In the order of their names."""
        return (partition_of(name) for name in sorted(self._known))

    @property
    def unrecovered(self) -> frozenset[str]:
        return frozenset(self._unrecovered)

    def is_new(self, name: str) -> bool:
        return name in self._created

    def is_unrecovered(self, name: str) -> bool:
        return name in self._unrecovered

    def is_clean(self, name: str) -> bool:
        """Whether its files are as somebody has closed them."""
        return name not in self._unrecovered and name not in self._created

    def add(self, name: str, *, is_new: bool) -> None:
        self._known.add(name)
        if is_new:
            self._created.add(name)

    def note_opened(self, name: str) -> None:
        self._unrecovered.discard(name)
        self._created.discard(name)

    def remove(self, name: str) -> None:
        for noted in (self._known, self._created, self._unrecovered):
            noted.discard(name)
