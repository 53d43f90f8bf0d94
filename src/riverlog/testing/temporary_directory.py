"""A directory that exists while somebody wants it and is gone afterwards, also if nobody ever says so."""

import atexit
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4


class TemporaryDirectory:
    """Its name is known before there is anything on the disk. What is there still when the process ends is
    removed then; only a process that is killed leaves it behind."""

    def __init__(self, end_use: Callable[[], None]) -> None:
        """`end_use` is called before a removal at the end of the process: nothing is written after it."""
        self.path = f"{tempfile.gettempdir()}/riverlog-{uuid4().hex[:12]}"
        self.exists = False
        self._end_use = end_use

    def create(self) -> None:
        """Or find it there already."""
        if not self.exists:
            Path(self.path).mkdir(mode=0o700)
            self.exists = True
            atexit.register(self._remove_at_exit)

    def remove(self) -> None:
        if self.exists:
            atexit.unregister(self._remove_at_exit)
            shutil.rmtree(self.path, ignore_errors=True)
            self.exists = False

    def _remove_at_exit(self) -> None:
        try:
            self._end_use()
        finally:
            self.remove()
