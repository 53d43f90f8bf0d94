"""What a session of the shared store is for the operating system: a locked file and two named pipes.

| file | held by its owner | what others do with it |
|---|---|---|
| `N.lock` | exclusively locked | try the lock: it is free exactly if the owner is gone |
| `N.alive` | the writing end of a silent pipe | wait at the reading end: it ends with the owner |
| `N.wake` | the reading end of a pipe | write a byte, so that the owner looks for changes |

The kernel lets go of all three when a process ends, however it ends, so no time-out is involved. The lock is
the truth; pipes only say when to look. Pipes and not sockets, because a socket's path must be short and
directories of tests are not. Not here: which sessions there are, and what belongs to them (`tree`).
"""

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterable, Iterator
from typing import Final

_LOCK: Final = "lock"
_ALIVE: Final = "alive"
_WAKE: Final = "wake"
_OPENING: Final = "opening.lock"
_MODE: Final = 0o600
_DRAIN_BYTES: Final = 4096


class OwnSession:
    """The session of this owner, from its beginning on. Several can be in one process."""

    def __init__(self, directory: str, number: int) -> None:
        self._descriptors: list[int] = []
        try:
            # The pipe before the lock: whoever finds the lock taken can rely on hearing of the end.
            os.mkfifo(_path(directory, number, _ALIVE), _MODE)
            self._take(os.open(_path(directory, number, _ALIVE), os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
            os.mkfifo(_path(directory, number, _WAKE), _MODE)
            # For writing as well, so that it never reads as ended when those who rang have closed theirs.
            self.wake = os.open(_path(directory, number, _WAKE), os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            self._take(self.wake)
            lock = os.open(_path(directory, number, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _MODE)
            self._take(lock)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException:
            self.release()
            raise
        self.number = number

    def heed(self) -> None:
        """Take the bytes of those who rang so far."""
        with contextlib.suppress(BlockingIOError):
            while len(os.read(self.wake, _DRAIN_BYTES)) == _DRAIN_BYTES:
                pass

    def release(self) -> None:
        """Let go of everything, as the kernel does at the end of a process."""
        while self._descriptors:
            os.close(self._descriptors.pop())

    def _take(self, descriptor: int) -> None:
        self._descriptors.append(descriptor)


@contextlib.contextmanager
def alone(directory: str) -> Iterator[None]:
    """One process after the other. SQLite makes a new file one with a write-ahead log, and removes the log
    with its last user, under locks that it does not wait for; both take some milliseconds."""
    descriptor = os.open(f"{directory}/{_OPENING}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _MODE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def begin(directory: str, number: int) -> OwnSession:
    """The number is new; what is left of a beginning that was cut short under it is removed first."""
    os.makedirs(directory, mode=0o700, exist_ok=True)
    remove(directory, number)
    return OwnSession(directory, number)


def is_alive(directory: str, number: int) -> bool:
    try:
        descriptor = os.open(_path(directory, number, _LOCK), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def listen_for_end(directory: str, number: int) -> int | None:
    """A descriptor that becomes readable when the session ends, or None if it has ended."""
    try:
        descriptor = os.open(_path(directory, number, _ALIVE), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    # Asked after the pipe was opened: an owner that is there now is heard of when it goes.
    if is_alive(directory, number):
        return descriptor
    os.close(descriptor)
    return None


def ring(directory: str, numbers: Iterable[int]) -> None:
    """Have the owners look for changes. One that has not taken its bytes for long will look anyway."""
    for number in numbers:
        try:
            descriptor = os.open(_path(directory, number, _WAKE), os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in (errno.ENXIO, errno.ENOENT):
                continue  # It has ended.
            raise
        try:
            os.write(descriptor, b"\0")
        except (BlockingIOError, BrokenPipeError):
            pass
        finally:
            os.close(descriptor)


def remove(directory: str, number: int) -> None:
    for kind in (_ALIVE, _WAKE, _LOCK):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_path(directory, number, kind))


def _path(directory: str, number: int, kind: str) -> str:
    return f"{directory}/{number}.{kind}"
