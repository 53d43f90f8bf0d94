"""The other replicas of a partition as its leader sees them: who is in sync, and how far each has come.

Who is in sync is what the metadata says, with the change that this leader has under way; how far each has
come is what its fetches say. Not here: the watermark that follows from both (`watermark`), and the log.
"""

from collections.abc import Iterator
from dataclasses import replace

from riverlog.model.ids import BrokerEpoch, NodeId, TopicId
from riverlog.replication.leading.follower_states import FollowerFetch, FollowerStates
from riverlog.replication.leading.in_sync import InSyncReplicas
from riverlog.replication.leading.isr import IsrChange, IsrRules, LogBounds, decide_isr
from riverlog.replication.leading.standing import Standing
from riverlog.storage.log.log import Log


class LedReplicas:
    __slots__ = ("_key", "_standing", "followers", "in_sync")

    def __init__(self, in_sync: InSyncReplicas, standing: Standing, key: tuple[TopicId, int]) -> None:
        """`key` is the partition by topic id."""
        self.in_sync = in_sync
        self.followers = FollowerStates()
        self._standing = standing
        self._key = key

    def take(self, in_sync: InSyncReplicas) -> None:
        self.in_sync = in_sync
        self.followers.retain(in_sync)

    def is_follower_now(self, fetch: FollowerFetch) -> bool:
        """Whether it comes from another replica, under its present registration."""
        is_present = self._standing.is_present(fetch.node_id, fetch.broker_epoch)
        return is_present and self.in_sync.is_follower(fetch.node_id)

    def is_candidate(self, fetch: FollowerFetch, log: Log) -> bool:
        """Whether it is out of sync, and is so no longer as far as its fetch tells."""
        return (
            fetch.node_id not in self.in_sync.isr
            and fetch.fetch_offset >= log.high_watermark
            and fetch.fetch_offset >= log.state.epochs.latest_start
        )

    def wanted_isr(self, log: Log, now_s: float, rules: IsrRules) -> IsrChange | None:
        """The ISR as it should be by what the followers have fetched; None when that is what it is."""
        bounds = LogBounds(log.state.epochs.latest_start, log.high_watermark, log.log_end_offset)
        self.followers.look(self.in_sync, now_s, bounds.log_end)
        return decide_isr(self.in_sync, self.followers, self._may_join, bounds, now_s, rules)

    def _may_join(self, node_id: NodeId, broker_epoch: BrokerEpoch) -> bool:
        return self._standing.may_join(node_id, broker_epoch, self._key)

    def propose_isr(self, change: IsrChange) -> None:
        """A change is under way: who comes in by it counts from here on, who leaves counts still."""
        joining = tuple(node_id for node_id, _ in change.joining)
        self.in_sync = replace(self.in_sync, joining=joining)

    def withdraw_isr(self, partition_epoch: int) -> bool:
        """A change of the state with this epoch is known not to have been made; whether it was under way."""
        if self.in_sync.partition_epoch != partition_epoch:
            return False
        self.in_sync = replace(self.in_sync, joining=())
        return True

    def are_in_sync_at(self, log_end: int) -> bool:
        """Whether all in sync have said under this epoch that they have everything, and nobody comes in."""
        if self.in_sync.joining:
            return False
        states = [self.followers.get(each) for each in self.in_sync.followers]
        return all(each is not None and each.end_offset >= log_end for each in states)

    def in_sync_with(self, offset: int) -> Iterator[tuple[NodeId, int]]:
        """The followers in sync whose logs cover the offset, as they have told, with where they end."""
        for each in self.in_sync.isr:
            state = self.followers.get(each)
            if state is not None and state.log_start_offset <= offset <= state.end_offset:
                yield each, state.end_offset

    def lag(self, log: Log) -> int:
        """How many records the follower has to copy that is furthest behind, in sync or not."""
        least = self.followers.least(self._others())
        return 0 if least is None else log.log_end_offset - max(least, log.log_start_offset)

    def low_watermark(self, log: Log) -> int:
        """The lowest log start among the replicas that are alive, as far as the followers have told: what is
        below it is deleted everywhere that counts."""
        alive = [
            each
            for each in self._others()
            if (broker := self._standing.brokers.get(each)) is not None and self._key not in broker.offline
        ]
        least = self.followers.least_log_start(alive)
        own = log.log_start_offset
        return own if least is None else min(own, least)

    def _others(self) -> Iterator[NodeId]:
        return (each for each in self.in_sync.replicas if self.in_sync.is_follower(each))
