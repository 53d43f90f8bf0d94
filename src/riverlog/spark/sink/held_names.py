"""Names that transactional ids are made of: each is held by one living process, and then by another one.

Spark ends a Python process that has had nothing to do for a minute, and a coordinator keeps a transactional
id for days: were a name for one process only, a query with pauses would fill it. So a name is a file in the
host's directory for what is temporary, and who holds the file's lock holds the name. The kernel takes the
lock away when the process ends, and only then: one that is paused, or is slow, keeps its name, and others
take another. The file says of each slot the last epoch that it was used in, written before it is used, so
that the next holder knows what the one before may have left open.

A name is never held twice, and to lose its file does no harm: then another name is made. So files may be
deleted by anybody at any time, and where none can be written each process has names of its own. A host is
known by its own name and its present start, so that a copy of the directory is of no use anywhere else.
"""

import fcntl
import hashlib
import os
import secrets
import socket
import tempfile
import time
from array import array
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

_HELD_MAX: Final = 64
"""By one process at a time, each an open file."""
_UNUSED_S_MAX: Final = 24 * 3600.0
_SLOTS_MAX: Final = 4096
_SLOT_BYTES: Final = 8
_SEPARATOR: Final = "\0"
_UNSEEN: Final = "."
"""What no file begins with that somebody looks for."""
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


@dataclass(slots=True)
class HeldName:
    name: str
    epochs: list[int] = field(default_factory=list)
    """The last one of each slot."""
    first_epoch_here: int | None = None
    """Of this process."""
    _file: int | None = None

    def use_slot(self, epoch: int) -> int:
        """One that was used in earlier epochs only, or is new."""
        slot = next((slot for slot, last in enumerate(self.epochs) if last < epoch), len(self.epochs))
        return self.use(slot, epoch)

    def use(self, slot: int, epoch: int) -> int:
        """This slot, unless that cannot be noted: then the name is another, for this process only."""
        if not self._note(slot, epoch):
            self.release()
            self.name, self.epochs, slot = _new_name(), [], 0
        self.epochs[slot : slot + 1] = [epoch]
        if self.first_epoch_here is None:
            self.first_epoch_here = epoch
        return slot

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _note(self, slot: int, epoch: int) -> bool:
        if self._file is None:
            return True
        if slot >= _SLOTS_MAX:
            return False
        try:
            os.pwrite(self._file, array("q", [epoch]).tobytes(), slot * _SLOT_BYTES)
        except OSError:
            return False
        return True


_held: dict[str, HeldName] = {}
"""By purpose, the longest unused first."""
_holder = 0
"""The process that holds them."""


def held_name(*purpose: str) -> HeldName:
    """The name that this process has for the purpose; others have other ones."""
    key = _SEPARATOR.join(purpose)
    _leave_to_parent()
    held = _held.pop(key, None) or _taken(key)
    _held[key] = held
    while len(_held) > _HELD_MAX:
        _held.pop(next(iter(_held))).release()
    return held


def is_held(*purpose: str) -> bool:
    """Whether this process has a name for the purpose already."""
    _leave_to_parent()
    return _SEPARATOR.join(purpose) in _held


def _leave_to_parent() -> None:
    # Workers are forked. What is closed here stays locked by the parent.
    global _holder
    if _holder != os.getpid():
        for held in _held.values():
            held.release()
        _held.clear()
        _holder = os.getpid()


def _taken(key: str) -> HeldName:
    directory = names_directory()
    if directory is None:
        return HeldName(_new_name())
    begin = hashlib.sha256(_SEPARATOR.join((_host(), key)).encode()).hexdigest()[:32] + "-"
    try:
        for path in sorted(directory.iterdir()):
            if path.name.startswith(begin) and (file := _locked(path, os.O_RDWR)) is not None:
                return HeldName(path.name.removeprefix(begin), _read(file), _file=file)
        _delete_unused(directory)
        return _made(directory, begin)
    except OSError:
        return HeldName(_new_name())


def _made(directory: Path, begin: str) -> HeldName:
    """A new one, whose file is locked before others find it: one that was not could be taken first."""
    name = _new_name()
    unseen = directory / f"{_UNSEEN}{name}"
    file = _locked(unseen, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    if file is None:
        return HeldName(_new_name())
    try:
        unseen.rename(directory / f"{begin}{name}")
    except OSError:
        os.close(file)
        raise
    return HeldName(name, _file=file)


def _locked(path: Path, flags: int) -> int | None:
    """The open file; None if it is held by another process, or was deleted meanwhile."""
    try:
        file = os.open(path, flags, 0o600)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    if os.fstat(file).st_nlink == 0:
        os.close(file)
        return None
    return file


def _read(file: int) -> list[int]:
    content = os.pread(file, _SLOTS_MAX * _SLOT_BYTES, 0)
    return array("q", content[: len(content) // _SLOT_BYTES * _SLOT_BYTES]).tolist()


def _delete_unused(directory: Path) -> None:
    oldest_s = time.time() - _UNUSED_S_MAX
    for path in directory.iterdir():
        try:
            is_old = path.stat().st_mtime < oldest_s
        except FileNotFoundError:
            continue
        if is_old and (file := _locked(path, os.O_RDWR)) is not None:
            path.unlink(missing_ok=True)
            os.close(file)


def names_directory() -> Path | None:
    """This user's own; None where there can be none."""
    path = Path(tempfile.gettempdir()) / f"riverlog-spark-{os.getuid()}"
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    except OSError:
        return None
    return path if path.is_dir() and not path.is_symlink() and found.st_uid == os.getuid() else None


@cache
def _host() -> str:
    boot = _BOOT_ID.read_text() if _BOOT_ID.exists() else ""
    return socket.gethostname() + boot


def _new_name() -> str:
    return secrets.token_hex(6)
