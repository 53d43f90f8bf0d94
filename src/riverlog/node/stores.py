"""Which metadata store a node uses: its own, one that the brokers of a host share, or a ZooKeeper
ensemble."""

from riverlog.metadata.stores.embedded_store import FILE_NAME, EmbeddedStore
from riverlog.metadata.stores.shared.store import SharedStore
from riverlog.metadata.stores.zookeeper_servers import parse_connect
from riverlog.model.config.slices import ServerConfig
from riverlog.model.errors import ConfigError
from riverlog.model.executor import Executor
from riverlog.model.metadata_store import MetadataStore
from riverlog.node.zookeeper_extra import MISSING


def is_shared(config: ServerConfig) -> bool:
    """Whether other nodes use the store as well."""
    return config.zookeeper_connect is not None or config.shared_metadata_dir is not None


async def open_configured_store(config: ServerConfig, directory: str, thread: Executor) -> MetadataStore:
    """`directory` is where a store of the node's own is; `thread` runs one thing at a time, and ours only."""
    if config.zookeeper_connect is not None:
        return await _open_zookeeper(config, config.zookeeper_connect, thread)
    if config.shared_metadata_dir is not None:
        return await SharedStore.open(config.shared_metadata_dir, thread)
    return await EmbeddedStore.open(f"{directory}/{FILE_NAME}", thread)


async def _open_zookeeper(config: ServerConfig, connect: str, thread: Executor) -> MetadataStore:
    if config.shared_metadata_dir is not None:
        raise ConfigError(
            "zookeeper.connect and riverlog.shared.metadata.dir are both set; a cluster has one of them."
        )
    servers = parse_connect(connect)
    try:
        from riverlog.metadata.stores.zookeeper_store import ZooKeeperStore
    except ModuleNotFoundError as error:
        if error.name != "kazoo":
            raise
        raise ConfigError(MISSING) from error
    waits_ms = config.zookeeper_connection_timeout_ms
    return await ZooKeeperStore.open(
        servers,
        session_timeout_s=config.zookeeper_session_timeout_ms / 1000,
        connection_timeout_s=None if waits_ms is None else waits_ms / 1000,
        thread=thread,
    )
