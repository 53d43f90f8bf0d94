"""How a data directory was left: cleanly, or with logs that must be recovered when they are opened.

Kafka's marker file says that every log is clean. Where some logs were not recovered before the shutdown,
our own file lists them instead, so that Kafka, which does not know it, would check everything. Reading
removes both: from then on a crash leaves no marker behind. The marker also has the epoch of the broker's last
registration, so that it counts for nothing in a copy that is older.
"""

import json

from riverlog.model.disk import Disk
from riverlog.storage.files import names
from riverlog.storage.files.checkpoint import replace_file

_NO_EPOCH = -1


def read_shutdown_state(disk: Disk, path: str, known: set[str]) -> tuple[set[str], int | None]:
    """Names of the partitions' directories that need recovery, and the epoch of the registration under which
    all was left clean; None where not all was, or there was no registration that others know of."""
    marker, list_path = f"{path}/{names.CLEAN_SHUTDOWN}", f"{path}/{names.UNRECOVERED}"
    epoch: int | None = None
    if disk.exists(marker):
        unrecovered = set[str]()
        epoch = _epoch_in(disk.read(marker))
    elif disk.exists(list_path):
        unrecovered = known & set(disk.read(list_path).decode(errors="replace").splitlines())
    else:
        return set(known), None
    disk.unlink(marker)
    disk.unlink(list_path)
    disk.sync_directory(path)
    return unrecovered, epoch


def write_shutdown_state(
    disk: Disk, path: str, unrecovered: set[str], broker_epoch: int | None = None
) -> None:
    """The last thing that a clean shutdown does."""
    if unrecovered:
        content = "".join(f"{name}\n" for name in sorted(unrecovered)).encode()
        replace_file(disk, f"{path}/{names.UNRECOVERED}", content)
    else:
        epoch = _NO_EPOCH if broker_epoch is None else broker_epoch
        replace_file(disk, f"{path}/{names.CLEAN_SHUTDOWN}", b'{"version":0,"brokerEpoch":%d}' % epoch)


def _epoch_in(marker: bytes) -> int | None:
    """Older markers are empty."""
    try:
        epoch = json.loads(marker)["brokerEpoch"]
    except (ValueError, TypeError, KeyError):
        return None
    return epoch if isinstance(epoch, int) and epoch != _NO_EPOCH else None
