"""How a node registers itself: what it says of itself, and what it looks at before it does."""

from collections.abc import Mapping

from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.image import ClusterImage
from riverlog.metadata.registrar import Registrar
from riverlog.metadata.registration import Registrant
from riverlog.metadata.restarts import FoundData, Restart, TopicDemands
from riverlog.metadata.stores.shared import host
from riverlog.model.metadata_store import MetadataStore
from riverlog.model.network import Address
from riverlog.node.failed_directories import by_topic
from riverlog.node.surroundings import Surroundings
from riverlog.storage.directory.data_directories import DataDirectories


def registrar_of(
    given: Surroundings,
    store: MetadataStore,
    follower: MetadataFollower,
    directories: DataDirectories,
    endpoints: Mapping[str, Address],
) -> Registrar:
    config = given.config
    me = Registrant(
        config.node_id,
        endpoints,
        {listener.name: listener.protocol.value for listener in config.listeners},
        config.rack,
        config.host or host.host_id(),
        given.boot_id(),
        tuple(each.meta.directory_id for each in directories.online),
        directories.has_unusable,
        {} if given.is_alone else by_topic(directories.offline()),
    )
    return Registrar(
        store,
        follower,
        me,
        session_timeout_s=config.zookeeper_session_timeout_ms / 1000,
        wall_ms=given.clock.wall_ms,
        restart=None if given.is_alone else _restart(given, store, follower, directories),
    )


def _restart(
    given: Surroundings, store: MetadataStore, follower: MetadataFollower, directories: DataDirectories
) -> Restart:
    found = FoundData(
        given.boot_id(),
        {each.meta.directory_id: each.left_by for each in directories.online},
        directories.has_unusable,
        directories.holds_log,
    )

    def demands(image: ClusterImage, topic: str) -> TopicDemands:
        config = given.live_config.log_config(image, topic)
        return TopicDemands(config.min_insync_replicas, config.acks_fsync)

    return Restart(store, follower, given.config.node_id, found, demands, given.metrics)
