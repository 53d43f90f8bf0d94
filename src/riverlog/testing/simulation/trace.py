"""What happened in a run, line by line, and the hash by which two runs are the same.

The first line has the case, so that a trace can be run again; each of the others the virtual time, who, and
what. The hash is over all of these, kept or not.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import IO, Any, Final

VERSION: Final = 2


class Trace:
    def __init__(self, now_s: Callable[[], float], steps: Callable[[], int]) -> None:
        self._now_s, self._steps = now_s, steps
        self._hash = hashlib.sha256()
        self._file: IO[str] | None = None

    def write_to(self, file: IO[str], case: Mapping[str, Any]) -> None:
        self._file = file
        file.write(json.dumps({"trace": VERSION, "case": case}) + "\n")

    def note(self, who: str, what: str, **facts: object) -> None:
        line = f"{self._now_s():.6f} {self._steps()} {who} {what} {facts}"
        self._hash.update(line.encode())
        if self._file is not None:
            entry = {"t": round(self._now_s(), 6), "step": self._steps(), "who": who, "what": what, **facts}
            self._file.write(json.dumps(entry, default=str) + "\n")

    @property
    def hash(self) -> str:
        return self._hash.copy().hexdigest()[:16]
