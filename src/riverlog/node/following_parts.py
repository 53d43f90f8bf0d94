"""What a broker of a cluster copies from others: replicas of what they lead. A node that is alone has none.

With it goes what the controller is told of logs here that go beyond the metadata. Not here: the copying
(`replication.following`), and the connections (`followed_leaders`).
"""

from collections.abc import Callable

from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.registrar import Registrar
from riverlog.node.followed_leaders import following_of
from riverlog.node.surroundings import Surroundings
from riverlog.replication.log_end_reports import LogEndReports
from riverlog.replication.replica_set import ReplicaSet
from riverlog.storage.directory.data_directories import DataDirectories


class FollowingParts:
    def __init__(
        self,
        given: Surroundings,
        follower: MetadataFollower,
        replicas: ReplicaSet,
        directories: DataDirectories,
        registrar: Registrar,
        *,
        on_older: Callable[[], None],
    ) -> None:
        """They follow the image after the replicas; `on_older` is called when the metadata is found to be
        older than the logs."""
        self._follower = follower
        self.following = following_of(
            given.settings,
            given.config,
            replicas,
            given.network,
            lambda: follower.image,
            broker_epoch=lambda: registrar.last_epoch,
            write_checkpoints=directories.write_checkpoints,
            chance=given.random.random,
            metrics=given.metrics,
        )
        follower.subscribe(self.following.apply)
        self._reports = LogEndReports(replicas, registrar.announce_log_ends, given.metrics, on_older=on_older)
        follower.subscribe(self._reports.apply)

    def start(self) -> None:
        self._reports.start()
        self.following.start(self._follower.image)

    def stop(self) -> None:
        """As when the process is killed."""
        self.following.stop()

    async def close(self) -> None:
        await self._reports.close()
        await self.following.close()
