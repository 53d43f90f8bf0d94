"""The data directories of a node at its start: opened as its own, and joined to a cluster.

Not here: the logs in them, and whose a directory is (`first_look`).
"""

import logging
from collections.abc import Callable

from riverlog.metadata import cluster
from riverlog.metadata.payloads import parse_uuid
from riverlog.model.config.slices import LogConfig
from riverlog.model.errors import StorageError
from riverlog.model.metadata_store import MetadataStore
from riverlog.node.first_look import check_is_ours, cluster_id_beside, imported_cluster_id
from riverlog.node.surroundings import Surroundings
from riverlog.storage.directory.log_directory import LogDirectory
from riverlog.storage.disk.open_files import OpenFiles
from riverlog.storage.files.meta_properties import check_owner

_logger = logging.getLogger(__name__)


def open_directories(
    given: Surroundings, config_for: Callable[[str], LogConfig], open_files: OpenFiles
) -> tuple[list[LogDirectory], list[str]]:
    """Those that can be used, and the paths of the others, without which the node goes on as Kafka does.

    Blocks. One must be usable; where the node has its metadata to itself, the first, since it is in there.
    """
    opened: list[LogDirectory] = []
    unusable: dict[str, StorageError] = {}
    try:
        for path in given.config.log_dirs:
            holds_metadata = given.is_alone and not opened
            check_is_ours(given.disk, path, holds_metadata=holds_metadata)
            cluster_id = opened[0].meta.cluster_id if opened else _first_cluster_id(given)
            try:
                opened.append(_open(given, path, cluster_id, config_for, open_files))
            except StorageError as error:
                if holds_metadata:
                    raise
                unusable[path] = error
    except BaseException:
        for directory in opened:
            directory.close(clean=False)
        raise
    if not opened:
        raise next(iter(unusable.values()))
    for failure in unusable.values():
        _logger.error("%s The broker goes on without it.", failure)
    return opened, list(unusable)


def _first_cluster_id(given: Surroundings) -> str | None:
    paths = given.config.log_dirs
    return imported_cluster_id(paths[0]) or cluster_id_beside(given.disk, paths)


def _open(
    given: Surroundings,
    path: str,
    cluster_id: str | None,
    config_for: Callable[[str], LogConfig],
    open_files: OpenFiles,
) -> LogDirectory:
    return LogDirectory.open(
        path,
        disk=given.disk,
        clock=given.clock,
        node_id=given.config.node_id,
        cluster_id=cluster_id,
        new_uuid=given.new_id,
        config_for=config_for,
        open_files=open_files,
        boot_id=given.boot_id(),
    )


async def join_cluster(given: Surroundings, store: MetadataStore, directories: list[LogDirectory]) -> None:
    """The cluster of the store takes the directories in, or they are another's and refused."""
    meta = directories[0].meta
    # A directory without a single partition has nothing to lose with its metadata: a first start that was
    # cut short is simply begun again.
    is_new = not any(len(each) for each in directories)
    remembered = None if is_new else meta.cluster_id
    cluster_id = await cluster.prepare(
        store, remembered=remembered, fresh_id=parse_uuid(meta.cluster_id), is_shared=not given.is_alone
    )
    if is_new and not given.is_alone:
        for each in directories:
            each.join(cluster_id)
    check_owner(directories[0].meta, directories[0].path, given.config.node_id, cluster_id)
