"""How a data directory was left: cleanly, or with logs that must be recovered when they are opened.

Kafka's marker file says that every log is clean. Where some logs were not recovered before the shutdown,
our own file lists them instead, so that Kafka, which does not know it, would check everything. Reading
removes both: from then on a crash leaves no marker behind, but `opened_logs` tells which logs it concerns.
The marker also has the epoch of the broker's last registration, so that it counts for nothing in a copy that
is older.
"""

import json
from collections.abc import Set

from riverlog.model.disk import Disk
from riverlog.model.ids import BrokerEpoch
from riverlog.storage.directory.opened_logs import read_opened
from riverlog.storage.files import names
from riverlog.storage.files.checkpoint import replace_file
from riverlog.storage.files.partition_metadata import read_topic_id

_NO_EPOCH = -1


def is_closed_properly(disk: Disk, path: str) -> bool:
    """Whether somebody has shut it down, with all or some of its logs clean."""
    return disk.exists(f"{path}/{names.CLEAN_SHUTDOWN}") or disk.exists(f"{path}/{names.UNRECOVERED}")


def read_shutdown_state(
    disk: Disk, path: str, known: set[str], boot_id: str = ""
) -> tuple[set[str], BrokerEpoch | None]:
    """Names of the partitions' directories that need recovery, and the epoch of the registration under which
    all was left clean; None where not all was, or there was no registration that others know of."""
    marker, list_path = f"{path}/{names.CLEAN_SHUTDOWN}", f"{path}/{names.UNRECOVERED}"
    epoch: BrokerEpoch | None = None
    if disk.exists(marker):
        unrecovered = set[str]()
        epoch = _epoch_in(disk.read(marker))
    elif disk.exists(list_path):
        unrecovered = known & set(disk.read(list_path).decode(errors="replace").splitlines())
    else:
        opened = read_opened(disk, path, boot_id)
        return set(known) if opened is None else known & opened, None
    disk.unlink(marker)
    disk.unlink(list_path)
    disk.sync_directory(path)
    return unrecovered, epoch


def write_shutdown_state(
    disk: Disk, path: str, unrecovered: Set[str], broker_epoch: BrokerEpoch | None = None
) -> None:
    """The last thing that a clean shutdown does."""
    if unrecovered:
        content = "".join(f"{name}\n" for name in sorted(unrecovered)).encode()
        replace_file(disk, f"{path}/{names.UNRECOVERED}", content)
    else:
        epoch = _NO_EPOCH if broker_epoch is None else broker_epoch
        replace_file(disk, f"{path}/{names.CLEAN_SHUTDOWN}", b'{"version":0,"brokerEpoch":%d}' % epoch)


def remove_unfinished(disk: Disk, path: str, unrecovered: Set[str]) -> set[str]:
    """After a crash: take away directories of partitions whose creation did not get as far as a topic id or a
    segment, and tell which. The partition may have been made in another directory since."""
    removed = set[str]()
    for name in sorted(unrecovered):
        directory = f"{path}/{name}"
        has_log = any(each.endswith(names.LOG) for each in disk.list(directory))
        if not has_log and read_topic_id(disk, directory, clean=False) is None:
            disk.remove_tree(directory)
            removed.add(name)
    return removed


def _epoch_in(marker: bytes) -> BrokerEpoch | None:
    """Older markers are empty."""
    try:
        epoch = json.loads(marker)["brokerEpoch"]
    except (ValueError, TypeError, KeyError):
        return None
    return BrokerEpoch(epoch) if isinstance(epoch, int) and epoch != _NO_EPOCH else None
