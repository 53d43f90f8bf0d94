"""Which machine this is, and whether a directory is on its own disk: the shared store serves one host.

Locks and shared memory, on which the store rests, mean nothing between machines. What cannot be told is not
refused: on systems without /proc only the noted host is compared.
"""

import os
import platform
from hashlib import sha256
from typing import Final

from riverlog.model.errors import ConfigError

_MACHINE_ID_FILES: Final = ("/etc/machine-id", "/var/lib/dbus/machine-id")
_REMOTE: Final = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "afs", "9p", "virtiofs", "ceph", "lustre", "gpfs"),
        *("glusterfs", "beegfs", "ocfs2", "gfs2", "orangefs", "pvfs2", "davfs"),
        *("fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuse.ceph", "fuse.rclone", "fuse.davfs2"),
    }
)


def host_id() -> str:
    """The same for all processes of a machine, and another one on every other machine; tells nothing about
    it."""
    return sha256(_machine().encode()).hexdigest()[:16]


def boot_id() -> str:
    """Another one each time the machine is started; empty where the system does not tell."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def host_name() -> str:
    return platform.node()


def check_is_local(directory: str) -> None:
    """Raises `ConfigError` for a file system that other machines have, too."""
    kind = file_system_of(directory)
    if kind in _REMOTE:
        raise ConfigError(
            f"{directory} is on a file system that other machines may share ({kind}). Brokers of one host "
            "share their metadata in a directory of a local disk: name one (--data-dir), or use ZooKeeper "
            "(zookeeper.connect) for brokers of several hosts."
        )


def file_system_of(directory: str, mounts: str = "/proc/self/mountinfo") -> str | None:
    """Its kind, by the nearest mount point; None where the system does not tell."""
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        return None
    path = os.path.realpath(directory)
    best, kind = "", None
    for line in lines:
        before, separator, after = line.partition(" - ")
        fields = before.split()
        if not separator or len(fields) < 5:
            continue
        point = fields[4].encode().decode("unicode_escape")  # A space is written as \040.
        if _is_below(path, point) and len(point) >= len(best):
            best, kind = point, after.split()[0]
    return kind


def _is_below(path: str, point: str) -> bool:
    return point == "/" or path == point or path.startswith(point + "/")


def _machine() -> str:
    for name in _MACHINE_ID_FILES:
        try:
            with open(name, encoding="ascii") as file:
                found = file.read().strip()
        except (OSError, UnicodeDecodeError):
            continue
        if found:
            return found
    return platform.node()
