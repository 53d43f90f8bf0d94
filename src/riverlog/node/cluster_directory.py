"""The data directories of `serve --brokers N`, before any broker is started: new, of as many, or refused.

In each directory of `log.dirs` every broker has one of its own, `broker-ID`, and in the first one is the
metadata that they share. What cannot be served as it is, is refused with what can be done, and nothing has
been changed. The directory of a single node becomes that of the first broker (`take_over`).
"""

import logging
import os
import re
from collections.abc import Sequence
from typing import Final

from riverlog.model.config.settings import Settings
from riverlog.model.config.slices import ServerConfig
from riverlog.model.errors import FormatError
from riverlog.model.ids import NodeId
from riverlog.node.members import METADATA, Member, is_of_single_node
from riverlog.storage.files import names

_logger = logging.getLogger(__name__)
_BROKER: Final = re.compile(r"broker-(\d+)")
_ALLOWED: Final = frozenset({METADATA, names.LOCK, "lost+found"})
_SHOWN: Final = 3


def prepare_directories(settings: Settings, members: Sequence[Member]) -> None:
    """Raises `FormatError` for directories that these brokers cannot have."""
    config = ServerConfig.from_settings(settings)
    paths = config.log_dirs
    wanted = [member.node_id for member in members]
    if is_of_single_node(paths[0]):
        from riverlog.node.take_over import take_over  # Loads the storage, which others need not wait for.

        take_over(paths, wanted, has_own_store="zookeeper.connect" not in settings)
    for path in paths:
        _check(path, wanted)


def _check(path: str, wanted: Sequence[NodeId]) -> None:
    if not os.path.isdir(path):
        return
    entries = sorted(os.listdir(path))
    found = [NodeId(int(match[1])) for each in entries if (match := _BROKER.fullmatch(each))]
    foreign = [each for each in entries if each not in _ALLOWED and not _BROKER.fullmatch(each)]
    if foreign:
        shown = ", ".join(foreign[:_SHOWN]) + (", …" if len(foreign) > _SHOWN else "")
        raise FormatError(
            f"{path} is not the directory of several brokers: there is {shown}. Nothing was changed. Name an "
            "empty directory or a new one (--data-dir, log.dirs)."
        )
    if missing := sorted(set(found) - set(wanted)):
        raise FormatError(
            f"{path} has the data of the brokers {_listed(sorted(found))}, and with --brokers {len(wanted)} "
            f"partitions of {_listed(missing)} would have no leader. Start all of them: `riverlog serve "
            f"--brokers {max(found) - min(found) + 1} --data-dir {path}"
            + (f" --set node.id={min(found)}`." if min(found) != wanted[0] else "`.")
        )
    if found and (new := sorted(set(wanted) - set(found))):
        _logger.info("%s: new brokers %s, which get partitions of new topics only", path, _listed(new))


def _listed(node_ids: Sequence[int]) -> str:
    return ", ".join(map(str, node_ids))
