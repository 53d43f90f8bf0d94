"""How a data directory was left: cleanly, or with logs that must be recovered when they are opened.

Kafka's marker file says that every log is clean. Where some logs were not recovered before the shutdown,
our own file lists them instead, so that Kafka, which does not know it, would check everything. Reading
removes both: from then on a crash leaves no marker behind.
"""

from riverlog.model.disk import Disk
from riverlog.storage.files import names
from riverlog.storage.files.checkpoint import replace_file

_CLEAN = b'{"version":0,"brokerEpoch":-1}'


def read_shutdown_state(disk: Disk, path: str, known: set[str]) -> set[str]:
    """Names of the partitions' directories that need recovery."""
    marker, list_path = f"{path}/{names.CLEAN_SHUTDOWN}", f"{path}/{names.UNRECOVERED}"
    if disk.exists(marker):
        unrecovered = set[str]()
    elif disk.exists(list_path):
        unrecovered = known & set(disk.read(list_path).decode(errors="replace").splitlines())
    else:
        return set(known)
    disk.unlink(marker)
    disk.unlink(list_path)
    disk.sync_directory(path)
    return unrecovered


def write_shutdown_state(disk: Disk, path: str, unrecovered: set[str]) -> None:
    """The last thing that a clean shutdown does."""
    if unrecovered:
        content = "".join(f"{name}\n" for name in sorted(unrecovered)).encode()
        replace_file(disk, f"{path}/{names.UNRECOVERED}", content)
    else:
        replace_file(disk, f"{path}/{names.CLEAN_SHUTDOWN}", _CLEAN)
