"""Those who are told of every change of a partition, as the sessions of its followers are.

Not those who wait for one thing: records to read, or an acknowledgement (`waiting`).
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol, Union

from riverlog.replication.leading.tenure import Asker

if TYPE_CHECKING:
    from riverlog.replication.partition import Partition
    from riverlog.replication.resting import Resting

Watched = Union["Partition", "Resting", None]


class PartitionWatcher(Protocol):
    def on_partition_changed(self, partition: "Partition") -> None:
        """There are more records, or the watermark, the log start or the role is another. Called in the
        middle of a change: it may only note that there was one, and look later."""
        ...

    def asked(self, partition: "Partition") -> Asker | None:
        """Who copies the partition from its leader of this epoch; None for nobody."""
        ...

    def hurry(self) -> None:
        """Have its fetch answered, so that the next one comes."""
        ...

    def may_rest(self, partition: "Partition") -> bool:
        """Whether there is nothing for it to hear of until somebody writes."""
        ...

    def move_to(self, watched: Watched) -> None:
        """It watches this from now on; None: nothing, and it has to look anew."""
        ...


class Watchers:
    __slots__ = ("_watchers",)

    def __init__(self) -> None:
        self._watchers: dict[PartitionWatcher, None] = {}

    def __len__(self) -> int:
        return len(self._watchers)

    def add(self, watcher: PartitionWatcher) -> None:
        self._watchers[watcher] = None

    def remove(self, watcher: PartitionWatcher) -> None:
        self._watchers.pop(watcher, None)

    def tell(self, partition: "Partition") -> None:
        for each in self._watchers:
            each.on_partition_changed(partition)

    def askers(self, partition: "Partition") -> Iterator[Asker]:
        return (asker for each in self._watchers if (asker := each.asked(partition)) is not None)

    def hurry(self) -> None:
        for each in self._watchers:
            each.hurry()

    def may_rest(self, partition: "Partition") -> bool:
        return all(each.may_rest(partition) for each in self._watchers)

    def move_to(self, watched: Watched) -> None:
        """All of them leave."""
        for each in tuple(self._watchers):
            each.move_to(watched)
