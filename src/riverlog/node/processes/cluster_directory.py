"""The data directories of `serve --brokers N`, before any broker is started: new, of as many, or refused.

In each directory of `log.dirs` every broker has one of its own, `broker-ID`, and in the first one is the
metadata that they share. They are locked as long as the brokers run, so that no second supervisor adds
brokers of its own. What cannot be served as it is, is refused with what can be done, and nothing has been
changed. The directory of a single node becomes that of the first broker (`take_over`).
"""

import logging
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Final, NamedTuple

from riverlog.model.config.settings import Settings
from riverlog.model.config.slices import ServerConfig
from riverlog.model.errors import DirectoryInUseError, FormatError
from riverlog.model.ids import NodeId
from riverlog.node.processes.members import Member, directory_of, is_of_single_node
from riverlog.storage.directory.claim import take
from riverlog.storage.disk.local import LocalDisk
from riverlog.storage.files import names
from riverlog.storage.files.meta_properties import read_meta_properties

_logger = logging.getLogger(__name__)
_BROKER: Final = re.compile(r"broker-(\d+)")
_ALLOWED: Final = frozenset({names.SHARED_METADATA, names.LOCK, "lost+found"})
_SHOWN: Final = 3


class Typed(NamedTuple):
    """The command that was typed, as what can be done is told in its own words."""

    command: str
    option: str
    """Of the data directory."""


SERVE: Final = Typed("riverlog serve", "--data-dir")
CLUSTER_UP: Final = Typed("riverlog cluster up", "--dir")


@contextmanager
def prepared_directories(
    settings: Settings, members: Sequence[Member], typed: Typed = SERVE
) -> Iterator[None]:
    """They are these brokers' until the end. Raises `FormatError` for directories that these brokers cannot
    have, `DirectoryInUseError` for those that others have."""
    paths = ServerConfig.from_settings(settings).log_dirs
    wanted = [member.node_id for member in members]
    for path in paths:
        _refuse_foreign(path, typed)  # Before anything is written there.
    with ExitStack() as locks:
        for path in paths:
            locks.callback(take(LocalDisk(), path).release)
        if is_of_single_node(paths[0]):
            from riverlog.node.processes.take_over import take_over  # Loads what others need not wait for.

            take_over(paths, wanted, has_own_store="zookeeper.connect" not in settings)
        for path in paths:
            _refuse_foreign(path, typed)
            _check(path, wanted, typed)
        yield


def _refuse_foreign(path: str, typed: Typed) -> None:
    if not os.path.isdir(path) or is_of_single_node(path):
        return
    entries = sorted(os.listdir(path))
    foreign = [each for each in entries if each not in _ALLOWED and not _BROKER.fullmatch(each)]
    if foreign:
        shown = ", ".join(foreign[:_SHOWN]) + (", …" if len(foreign) > _SHOWN else "")
        raise FormatError(
            f"{path} is not the directory of several brokers: there is {shown}. Nothing was changed. Name an "
            f"empty directory or a new one ({typed.option}, log.dirs)."
        )


def _check(path: str, wanted: Sequence[NodeId], typed: Typed) -> None:
    found = [NodeId(int(match[1])) for each in sorted(os.listdir(path)) if (match := _BROKER.fullmatch(each))]
    for node_id in found:
        _refuse_running(path, node_id)
    if not set(found) <= set(wanted):
        found = _with_data(path, found, wanted)
    if missing := sorted(set(found) - set(wanted)):
        raise FormatError(
            f"{path} has the data of the brokers {_listed(sorted(found))}, and with --brokers {len(wanted)} "
            f"partitions of {_listed(missing)} would have no leader. Start all of them: `{typed.command} "
            f"--brokers {max(found) - min(found) + 1} {typed.option} {path}"
            + (f" --set node.id={min(found)}`." if min(found) != wanted[0] else "`.")
        )
    if found and (new := sorted(set(wanted) - set(found))):
        _logger.info("%s: new brokers %s, which get partitions of new topics only", path, _listed(new))


def _with_data(path: str, found: Sequence[NodeId], wanted: Sequence[NodeId]) -> list[NodeId]:
    """Without those that others than `wanted` have left which were never of the cluster: a start that was
    refused before it reached the metadata leaves a directory without logs, under a cluster id of its own."""
    clusters = Counter(_cluster_of(path, node_id) for node_id in found)
    return [
        node_id
        for node_id in found
        if node_id in wanted or _has_logs(path, node_id) or clusters[_cluster_of(path, node_id)] > 1
    ]


def _cluster_of(path: str, node_id: NodeId) -> str:
    """What nobody shares where there is none to be read; whoever opens the directory says why."""
    with suppress(OSError, FormatError):
        meta = read_meta_properties(LocalDisk(), directory_of(path, node_id))
        if meta is not None:
            return meta.cluster_id
    return f"broker {node_id}"


def _has_logs(path: str, node_id: NodeId) -> bool:
    """Also where it cannot be looked at, in which case nobody knows."""
    try:
        entries = os.listdir(directory_of(path, node_id))
    except OSError:
        return True
    return any(names.parse_partition_directory(each) is not None for each in entries)


def _refuse_running(path: str, node_id: NodeId) -> None:
    """A broker outlives a supervisor that was killed for as long as it takes to stop cleanly."""
    lock = f"{directory_of(path, node_id)}/{names.LOCK}"
    if not os.path.exists(lock):
        return
    try:
        LocalDisk().lock(lock).release()
    except BlockingIOError as error:
        raise DirectoryInUseError(
            f"{path} is in use: broker {node_id} still runs, though its supervisor does not. Wait until it "
            "has stopped, or stop it."
        ) from error


def _listed(node_ids: Sequence[int]) -> str:
    return ", ".join(map(str, node_ids))
