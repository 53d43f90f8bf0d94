"""Makes the directory of a single node that of the first of several brokers, in steps that can be taken
again.

The order is what keeps it from ever being half: first the metadata is copied into the shared store; then
`meta.properties` moves, without which no single node starts here; then everything else; at last the place
where it was collected gets the broker's name. A start that finds the collecting begun goes on with it.
Nothing is copied but the metadata, and nothing deleted; the node's own metadata file is kept under another
name.
"""

import asyncio
import logging
import os
import shutil
from collections.abc import Sequence
from typing import Final

from riverlog.metadata import layout, payloads
from riverlog.metadata.export import export, restore
from riverlog.metadata.stores.embedded_store import FILE_NAME, EmbeddedStore
from riverlog.metadata.stores.shared.store import SharedStore
from riverlog.model.errors import FormatError
from riverlog.model.executor import Executor
from riverlog.model.features import HIGHEST_LEVELS
from riverlog.model.ids import NodeId
from riverlog.node.adapters.threads import thread_executor
from riverlog.node.processes.members import STAGE, directory_of, is_of_single_node, metadata_of
from riverlog.storage.disk.local import LocalDisk
from riverlog.storage.files import names
from riverlog.storage.files.meta_properties import MetaProperties, read_meta_properties

_logger = logging.getLogger(__name__)
_KEPT_NAME: Final = f"{FILE_NAME}.taken-over"
_STAYS: Final = frozenset({names.SHARED_METADATA, STAGE, names.LOCK, "lost+found"})


def take_over(paths: Sequence[str], wanted: Sequence[NodeId], *, has_own_store: bool) -> None:
    """`paths` are the data directories, whose locks the caller holds; the first one has the metadata. Raises
    `FormatError`, and then nothing was changed."""
    first = paths[0]
    meta = _meta_of(first)
    _check(first, meta, wanted, has_own_store)
    if os.path.exists(f"{first}/{names.META_PROPERTIES}"):
        _share_metadata(first)
    # The first one last: as long as it is not done, the next start goes on here.
    for path in reversed(paths):
        if is_of_single_node(path):
            _move(path, meta.node_id)
    _logger.info("%s was that of a single node, and is now that of broker %d", first, meta.node_id)


def _meta_of(path: str) -> MetaProperties:
    stage = f"{path}/{STAGE}"
    begun = os.path.exists(f"{stage}/{names.META_PROPERTIES}")
    meta = read_meta_properties(LocalDisk(), stage if begun else path)
    if meta is None:
        raise FormatError(f"{path} has lost its {names.META_PROPERTIES}. Restore the file from a backup.")
    return meta


def _check(path: str, meta: MetaProperties, wanted: Sequence[NodeId], has_own_store: bool) -> None:
    if meta.node_id not in wanted:
        raise FormatError(
            f"{path} has the data of node {meta.node_id}, which is none of the brokers "
            f"{wanted[0]} to {wanted[-1]}. Count from it: --set node.id={meta.node_id}."
        )
    if not has_own_store:
        raise FormatError(
            f"{path} is the directory of a single node with metadata of its own. Nothing was changed. Take "
            "the metadata to ZooKeeper first: `riverlog metadata export` and `riverlog metadata import`."
        )
    if not any(os.path.exists(f"{path}/{each}") for each in (FILE_NAME, f"{STAGE}/{names.META_PROPERTIES}")):
        raise FormatError(f"{path} has no {FILE_NAME}. Nothing was changed. Restore the file from a backup.")


def _share_metadata(path: str) -> None:
    """All of it in one transaction; what an attempt before has left is made anew, as nobody has used it."""
    shutil.rmtree(metadata_of(path), ignore_errors=True)
    own, shared = thread_executor("own-metadata", 1), thread_executor("shared-metadata", 1)
    try:
        asyncio.run(_copy(path, own, shared))
    finally:
        own.shutdown()
        shared.shutdown()


async def _copy(path: str, own: Executor, shared: Executor) -> None:
    source = await EmbeddedStore.open(f"{path}/{FILE_NAME}", own)
    try:
        document = await export(source)
    finally:
        await source.close()
    target = await SharedStore.open(metadata_of(path), shared)
    try:
        await restore(target, document)
        # What only a store of several brokers must have.
        needed = {layout.OURS: b"", layout.FEATURES: payloads.encode_features(HIGHEST_LEVELS)}
        for path, data in needed.items():
            if await target.get(path) is None:
                await target.create(path, data)
    finally:
        await target.close()


def _move(path: str, node_id: NodeId) -> None:
    stage = f"{path}/{STAGE}"
    os.makedirs(stage, exist_ok=True)
    entries = [each for each in sorted(os.listdir(path)) if each not in _STAYS]
    entries.sort(key=lambda each: each != names.META_PROPERTIES)
    for each in entries:
        os.rename(f"{path}/{each}", f"{stage}/{_KEPT_NAME if each == FILE_NAME else each}")
        if each == names.META_PROPERTIES:
            _sync(path)
    os.rename(stage, directory_of(path, node_id))
    _sync(path)


def _sync(path: str) -> None:
    LocalDisk().sync_directory(path)
