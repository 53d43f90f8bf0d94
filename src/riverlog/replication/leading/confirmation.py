"""Proof, without the metadata store, that a leader leads still: all that are in sync copy from it still.

Who leads next is one of them, and from then on it asks the old leader for nothing. So when each of them has
sent a fetch under this epoch after a question was put, nobody else had led when it was put (I17). A fetch
that was on its way then says nothing, but the one after it was sent when the first had been answered: hence
two. Fetches that are waited for are answered at once, so that the next ones come.

Time says nothing here: a follower that asked a moment ago may lead since.
"""

import asyncio
from collections.abc import Collection
from typing import Protocol

from riverlog.model.ids import NodeId


class Led(Protocol):
    """A partition that this node leads, as far as it knows."""

    def silent_since(self, question: int) -> Collection[NodeId]:
        """Who in sync has not sent a fetch since so many were counted."""
        ...

    def hurry(self) -> None:
        """Have those answered who wait for records, so that they ask again."""
        ...


class Confirmations:
    """Those that a node waits for, over all partitions."""

    __slots__ = ("_questions", "_waits")

    def __init__(self) -> None:
        self._questions = 0
        self._waits: dict[tuple[Led, int], list[asyncio.Future[bool]]] = {}
        """By partition and the number of fetches that had come: one look is for all that began together."""

    def count(self) -> int:
        """The number of the fetch that has come now."""
        self._questions += 1
        return self._questions

    def wait(self, partition: Led) -> "asyncio.Future[bool]":
        """True when all have confirmed it, False when the partition has another leader or ISR by now."""
        ended: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        key = partition, self._questions
        if key in self._waits:
            self._waits[key].append(ended)
        else:
            self._waits[key] = [ended]
            partition.hurry()
        return ended

    def look(self) -> None:
        """After a fetch: end the waits that have what they waited for, forget those that were given up."""
        for key in tuple(self._waits):
            partition, since = key
            if not partition.silent_since(since):
                self._end(key, is_confirmed=True)
            elif all(each.done() for each in self._waits[key]):
                del self._waits[key]

    def is_awaited(self, follower: NodeId) -> bool:
        """Whether its next fetch is waited for, so that this one is to be answered at once."""
        return any(follower in partition.silent_since(since) for partition, since in self._waits)

    def give_up(self, partition: Led) -> None:
        """It has another leader or ISR."""
        for key in tuple(self._waits):
            if key[0] is partition:
                self._end(key, is_confirmed=False)

    def _end(self, key: tuple[Led, int], *, is_confirmed: bool) -> None:
        for ended in self._waits.pop(key):
            if not ended.done():
                ended.set_result(is_confirmed)
