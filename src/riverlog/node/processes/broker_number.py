"""The number of a broker that asks for one: `broker.id=-1`, as Apache Kafka 3 had it.

A data directory keeps the number that its broker was given. For a new one the cluster gives the next: numbers
are counted in the store, above `reserved.broker.max.id`, so that they do not meet those that people choose.
"""

from typing import Final

from riverlog.metadata import cluster, layout
from riverlog.model.config.server_config import ServerConfig
from riverlog.model.config.settings import Settings
from riverlog.model.errors import ConfigError, StorageError
from riverlog.model.executor import MakeExecutor
from riverlog.model.metadata_store import MetadataStore, NoNodeError, OutcomeUnknownError
from riverlog.node.stores import is_shared, open_configured_store
from riverlog.storage.disk.local import LocalDisk
from riverlog.storage.files.meta_properties import read_meta_properties

_KEY: Final = "broker.id"
_ASKS: Final = -1


async def with_broker_number(settings: Settings, new_executor: MakeExecutor) -> Settings:
    """The same settings, with a number if they ask for one. Waits for the store as a start does."""
    if "node.id" in settings or settings.get(_KEY) != _ASKS or _KEY not in settings:
        return settings
    config = ServerConfig.from_settings(_numbered(settings, 0))
    disk = LocalDisk()
    unreadable: StorageError | None = None
    for path in config.log_dirs:
        try:
            meta = read_meta_properties(disk, path) if disk.exists(path) else None
        except OSError as error:
            unreadable = StorageError(f"{path} cannot be used: {error}.")
            continue
        if meta is not None:
            return _numbered(settings, meta.node_id)
    if unreadable is not None:
        raise unreadable  # The number may be in there; another one would be another broker.
    if not settings.get("broker.id.generation.enable") or not is_shared(config):
        raise ConfigError(
            f"{settings.origin(_KEY)}: broker.id=-1 asks a cluster for a number, which needs "
            "zookeeper.connect and broker.id.generation.enable. Give node.id instead."
        )
    thread = new_executor("metadata", 1)
    try:
        store = await open_configured_store(config, "", thread)
        try:
            await cluster.check_is_ours(store)
            number = await next_number(store)
        finally:
            await store.close()
    finally:
        thread.shutdown()
    reserved = settings.get("reserved.broker.max.id")
    assert isinstance(reserved, int)
    return _numbered(settings, reserved + number)


async def next_number(store: MetadataStore) -> int:
    """From 1 upwards; each is given once. One whose answer is lost is not given at all."""
    while True:
        try:
            return await store.set(layout.BROKER_SEQUENCE, b"")
        except NoNodeError:
            await store.create(layout.BROKER_SEQUENCE)
        except OutcomeUnknownError:
            continue


def _numbered(settings: Settings, number: int) -> Settings:
    return settings.altered({_KEY: str(number)}, only=(_KEY,))
