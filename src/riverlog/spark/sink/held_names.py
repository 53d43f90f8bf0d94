"""Names that transactional ids are made of: each is held by one living process, and then by another one.

Spark ends a Python process that has had nothing to do for a minute, and a coordinator keeps a transactional
id for days: were a name for one process only, a query with pauses would fill it. So a name is a file in the
host's directory for what is temporary, and who holds the file's lock holds the name. The kernel takes the
lock away when the process ends, and only then: one that is paused, or is slow, keeps its name, and others
take another. The file says of each slot the last epoch that it was used in, written before it is used, so
that the next holder knows what the one before may have left open.

A name is never held twice, and to lose its file does no harm: then another name is made. So files may be
deleted by anybody at any time, and where none can be written each process has names of its own. A host is
known by its own name and its present start, and a file says which one it is, so that copies are of no use.
"""

import fcntl
import hashlib
import os
import secrets
import socket
import tempfile
import time
from array import array
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

_HELD_MAX: Final = 64
"""By one process at a time, each an open file."""
_UNUSED_S_MAX: Final = 24 * 3600.0
_SLOTS_MAX: Final = 4096
_SLOT_BYTES: Final = 8
_MARK_BYTES: Final = 16
"""What a file begins with: device and number of the file that it was made as."""
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
            note = array("q", [epoch]).tobytes()
            return os.pwrite(self._file, note, _MARK_BYTES + slot * _SLOT_BYTES) == _SLOT_BYTES
        except OSError:
            return False


_held: dict[str, HeldName] = {}
"""By purpose, the longest unused first."""


def held_name(*purpose: str, is_handed_on: bool = True) -> HeldName:
    """The name that this process has for the purpose; others have other ones."""
    key = _SEPARATOR.join(purpose)
    held = _held.pop(key, None) or (_taken(key) if is_handed_on else HeldName(_new_name()))
    _held[key] = held
    while len(_held) > _HELD_MAX:
        _held.pop(next(iter(_held))).release()
    return held


def is_held(*purpose: str) -> bool:
    """Whether this process has a name for the purpose already."""
    return _SEPARATOR.join(purpose) in _held


def _leave_to_parent() -> None:
    """What is closed here stays locked by the parent, and what is not would stay locked after it."""
    for held in _held.values():
        held.release()
    _held.clear()


# Every fork, or one that knows nothing of names would keep them for as long as it lives.
os.register_at_fork(after_in_child=_leave_to_parent)


def _taken(key: str) -> HeldName:
    directory = names_directory()
    if directory is None:
        return HeldName(_new_name())
    begin = hashlib.sha256(_SEPARATOR.join((_host(), key)).encode()).hexdigest()[:32] + "-"
    try:
        for path in sorted(directory.iterdir()):
            if path.name.startswith(begin) and (held := _handed_on(path, path.name.removeprefix(begin))):
                return held
        _delete_unused(directory)
        return _made(directory, begin)
    except OSError:
        return HeldName(_new_name())


def _handed_on(path: Path, name: str) -> HeldName | None:
    """None if another process holds it, or it is a copy, whose original may be held."""
    file = _locked(path, os.O_RDWR)
    if file is None:
        return None
    held = HeldName(name, _file=file)
    try:
        content = os.pread(file, _MARK_BYTES + _SLOTS_MAX * _SLOT_BYTES, 0)
        if not content.startswith(_mark(file)):
            held.release()
            return None
    except OSError:
        held.release()
        raise
    noted = content[_MARK_BYTES:]
    held.epochs = array("q", noted[: len(noted) // _SLOT_BYTES * _SLOT_BYTES]).tolist()
    return held


def _made(directory: Path, begin: str) -> HeldName:
    """A new one, whose file is locked before others find it: one that was not could be taken first."""
    name = _new_name()
    unseen = directory / f"{_UNSEEN}{name}"
    held = HeldName(name)
    try:
        held._file = _locked(unseen, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        if held._file is not None:
            os.pwrite(held._file, _mark(held._file), 0)
            unseen.rename(directory / f"{begin}{name}")
    except OSError:
        held.release()
        with suppress(OSError):
            unseen.unlink(missing_ok=True)
        raise
    return held


def _mark(file: int) -> bytes:
    found = os.fstat(file)
    return array("Q", [found.st_dev, found.st_ino]).tobytes()


def _locked(path: Path, flags: int) -> int | None:
    """The open file; None if it is held by another process, or was deleted meanwhile."""
    try:
        file = os.open(path, flags, 0o600)
    except FileNotFoundError:
        return None
    is_ours = False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_ours = os.fstat(file).st_nlink > 0
    except BlockingIOError:
        pass
    finally:
        if not is_ours:
            os.close(file)
    return file if is_ours else None


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
    try:
        path = Path(tempfile.gettempdir()) / f"riverlog-spark-{os.getuid()}"
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    except OSError:
        return None
    return path if path.is_dir() and not path.is_symlink() and found.st_uid == os.getuid() else None


@cache
def _host() -> str:
    try:
        boot = _BOOT_ID.read_text()
    except OSError:
        boot = ""  # Other systems than Linux, and containers that hide it.
    return socket.gethostname() + boot


def _new_name() -> str:
    return secrets.token_hex(6)
