"""Who replicates a partition, who of them is in sync, and how far each has come. Pure.

The metadata says the first two; the leader learns the third from the fetches of its followers, under its own
epoch: what they had fetched from another leader says nothing, since they may have to take it back.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from riverlog.model.ids import NodeId


@dataclass(frozen=True, slots=True)
class InSyncReplicas:
    """The replicas of a partition and its ISR, as its leader counts them."""

    leader: NodeId
    isr: tuple[NodeId, ...]
    replicas: tuple[NodeId, ...]

    @property
    def is_sole(self) -> bool:
        """There is no other replica, in sync or not."""
        return self.isr == self.replicas == (self.leader,)

    @property
    def followers(self) -> Iterator[NodeId]:
        """Those in sync, without the leader."""
        return (each for each in self.isr if each != self.leader)

    def is_follower(self, node_id: NodeId) -> bool:
        """Whether it is one of the other replicas, in sync or not."""
        return node_id in self.replicas and node_id != self.leader

    def is_enough(self, min_isr: int) -> bool:
        """Whether as many are in sync as `min.insync.replicas` asks for; no more can be than there are."""
        return len(self.isr) >= min(min_isr, len(self.replicas))


class FollowerEnds:
    """Where the log of each follower ends, as far as the leader of one epoch knows."""

    __slots__ = ("_ends",)

    def __init__(self) -> None:
        self._ends: dict[NodeId, int] = {}

    def note(self, follower: NodeId, end_offset: int) -> None:
        """A fetch from an offset says that everything below it is stored. It may be less than before: a
        follower that has lost its disk begins again."""
        self._ends[follower] = end_offset

    def least(self, followers: Iterable[NodeId]) -> int | None:
        """The end of the one furthest behind, where one that has not fetched has nothing; None for none."""
        return min((self._ends.get(each, 0) for each in followers), default=None)

    def retain(self, in_sync: InSyncReplicas) -> None:
        """Forget those that are no replicas any more."""
        for follower in [each for each in self._ends if not in_sync.is_follower(each)]:
            del self._ends[follower]

    def forget_all(self) -> None:
        """A new epoch begins."""
        self._ends.clear()
