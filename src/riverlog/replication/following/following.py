"""Which partitions this node copies from which leaders, as the image says: a fetcher for each leader.

Follows the image after the replicas have taken it over. Only the partitions that a change names are looked
at. A partition that is followed under another epoch, or from another leader, begins a new round there; what
the old one still answers is dropped.
"""

from collections.abc import Awaitable, Callable

from riverlog.metadata.delta import ImageDelta
from riverlog.metadata.image import ClusterImage, PartitionImage, TopicImage
from riverlog.model.config.replica_fetch_config import ReplicaFetchConfig
from riverlog.model.ids import BrokerEpoch, NodeId
from riverlog.model.metrics import Metrics
from riverlog.replication.following.checkpoints import CheckpointWrites
from riverlog.replication.following.copies import Copies
from riverlog.replication.following.fetcher import Connect, LeaderFetcher
from riverlog.replication.following.followed import Followed, FollowedKey
from riverlog.replication.replica_set import ReplicaSet


class Following:
    def __init__(
        self,
        node_id: NodeId,
        replicas: ReplicaSet,
        config: ReplicaFetchConfig,
        *,
        connect: Connect,
        broker_epoch: Callable[[], BrokerEpoch | None],
        write_checkpoints: Callable[[], Awaitable[None]],
        chance: Callable[[], float],
        metrics: Metrics,
    ) -> None:
        """`broker_epoch` is that of the present registration, None while there is none; `write_checkpoints`
        writes, among others, the recovery points of all logs."""
        self._node_id = node_id
        self._config = config
        self._copies = Copies(replicas, metrics)
        self._connect = connect
        self._broker_epoch = broker_epoch
        self._checkpoints = CheckpointWrites(write_checkpoints)
        self._chance = chance
        self._metrics = metrics
        self._fetchers: dict[NodeId, LeaderFetcher] = {}
        self._is_closed = False

    def start(self, image: ClusterImage) -> None:
        """Copy what the image says; from then on `apply` follows the changes."""
        for topic in image.topics.values():
            self._follow_topic(topic)

    def apply(self, delta: ImageDelta) -> None:
        """Call it after the replicas have taken the delta over."""
        if self._is_closed:
            return
        for topic in delta.deleted.values():
            for index in range(len(topic.partitions)):
                self._unfollow((topic.topic_id, index))
        for topic in delta.created.values():
            self._follow_topic(topic)
        for name, changes in delta.partitions.items():
            topic = delta.new.topics[name]
            for change in changes:
                self._follow(topic, change.partition, change.after)
        self._note_brokers(delta)

    def stop(self) -> None:
        """From here on nothing is asked and nothing is stored. Can be called again."""
        self._is_closed = True
        for fetcher in self._fetchers.values():
            fetcher.close()
        self._fetchers.clear()

    async def close(self) -> None:
        """`stop`, and return when nothing is being written any more."""
        self.stop()
        await self._checkpoints.close()

    def _note_brokers(self, delta: ImageDelta) -> None:
        old, new = delta.old.brokers, delta.new.brokers
        if old is new:
            return
        is_registered_anew = old.get(self._node_id) != new.get(self._node_id)
        for leader, fetcher in self._fetchers.items():
            if is_registered_anew or old.get(leader) != new.get(leader):
                fetcher.retry_now()

    def _follow_topic(self, topic: TopicImage) -> None:
        for index, image in enumerate(topic.partitions):
            self._follow(topic, index, image)

    def _follow(self, topic: TopicImage, index: int, image: PartitionImage) -> None:
        key, leader = (topic.topic_id, index), image.leader
        if leader is None or leader == self._node_id or self._node_id not in image.replicas:
            self._unfollow(key)
            return
        fetcher = self._fetcher_of(key)
        before = None if fetcher is None else fetcher.find(key)
        is_same_leader = fetcher is not None and fetcher.leader == leader
        if before is not None and is_same_leader and before.leader_epoch == image.leader_epoch:
            return  # Only who is in sync has changed.
        followed = Followed(topic.name, topic.topic_id, index, image.leader_epoch, image.unclean_epoch)
        if before is not None:
            followed.agreed_epoch = before.agreed_epoch
            if not is_same_leader:
                self._unfollow(key)
        self._fetcher(leader).follow(followed)

    def _fetcher_of(self, key: FollowedKey) -> LeaderFetcher | None:
        """Who copies it. Looked for among all of them, which are few: a table would cost each partition as
        much again."""
        return next((each for each in self._fetchers.values() if each.find(key) is not None), None)

    def _unfollow(self, key: FollowedKey) -> None:
        fetcher = self._fetcher_of(key)
        if fetcher is not None:
            fetcher.unfollow(key)

    def _fetcher(self, leader: NodeId) -> LeaderFetcher:
        """A leader of nothing any more keeps its fetcher, without a connection."""
        fetcher = self._fetchers.get(leader)
        if fetcher is None:
            peer = str(leader)
            fetcher = self._fetchers[leader] = LeaderFetcher(
                leader,
                self._node_id,
                self._copies,
                self._config,
                connect=self._connect,
                broker_epoch=self._broker_epoch,
                write_checkpoints=self._checkpoints.write,
                chance=self._chance,
                errors=self._metrics.counter("riverlog_fetch_errors_total", peer=peer),
            )
            self._metrics.gauge("riverlog_follower_lag_records", lambda: fetcher.lag_records, peer=peer)
        return fetcher
