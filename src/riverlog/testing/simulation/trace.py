"""What happened in a run, line by line, and the hash by which two runs are the same.

A line has the virtual time, who, and what. The hash is over all of them, kept or not.
"""

import hashlib
import json
from collections.abc import Callable
from typing import IO, Final

VERSION: Final = 1


class Trace:
    def __init__(self, now_s: Callable[[], float], steps: Callable[[], int]) -> None:
        self._now_s, self._steps = now_s, steps
        self._hash = hashlib.sha256()
        self._file: IO[str] | None = None

    def write_to(self, file: IO[str], seed: int) -> None:
        self._file = file
        file.write(json.dumps({"trace": VERSION, "seed": seed}) + "\n")

    def note(self, who: str, what: str, **facts: object) -> None:
        line = f"{self._now_s():.6f} {self._steps()} {who} {what} {facts}"
        self._hash.update(line.encode())
        if self._file is not None:
            entry = {"t": round(self._now_s(), 6), "step": self._steps(), "who": who, "what": what, **facts}
            self._file.write(json.dumps(entry, default=str) + "\n")

    @property
    def hash(self) -> str:
        return self._hash.copy().hexdigest()[:16]
