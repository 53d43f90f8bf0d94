"""Points where a Spark query can be stopped or made to fail by a test: files in a directory that both know.

The sides share no process: a driver has a JVM and Python workers, on a cluster in other trees of processes.
Who gets to a point that is closed notes it in a file and waits until the point is open again. What the
attempts of tasks did is noted in the same way, so that a test can tell that a second one really ran.
"""

import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.waiting import looks

_HELD_S = 240.0


class AttemptFailed(Exception):  # noqa: N818 - named for what it is
    """What a task raises that a test wants to fail."""


@dataclass(frozen=True, slots=True)
class Points:
    directory: Path

    # For the test.

    @contextmanager
    def closed(self, point: str) -> Iterator[None]:
        """Whoever gets there waits until the end of this block."""
        self.close(point)
        try:
            yield
        finally:
            self.open(point)

    def close(self, point: str) -> None:
        for path in self._notes(f"reached-{point}"):
            path.unlink()
        (self.directory / f"closed-{point}").touch()

    def open(self, point: str) -> None:
        (self.directory / f"closed-{point}").unlink(missing_ok=True)

    def reached(self, point: str) -> list[Mapping[str, Any]]:
        """Who has got to the point while it was closed."""
        return self._noted(f"reached-{point}")

    def attempts(self) -> list[Mapping[str, Any]]:
        """Every attempt of every task so far."""
        return self._noted("attempt")

    # For the query.

    def is_closed(self, point: str) -> bool:
        return (self.directory / f"closed-{point}").exists()

    def reach(self, point: str, **who: object) -> None:
        if not self.is_closed(point):
            return
        self.note(f"reached-{point}", who)
        for _ in looks(_HELD_S):
            if not self.is_closed(point):
                return
        raise AttemptFailed(f"held at {point} for {_HELD_S} s")

    def fail(self, point: str, **who: object) -> None:
        if self.is_closed(point):
            self.note(f"reached-{point}", who)
            raise AttemptFailed(f"as the test wants it, {who}")

    def note(self, kind: str, who: Mapping[str, object]) -> None:
        # Renamed into place, so that nobody reads half of it.
        name = uuid.uuid4().hex
        hidden = self.directory / f".{name}"
        hidden.write_text(json.dumps(who))
        hidden.rename(self.directory / f"{kind}-{name}.json")

    def _noted(self, kind: str) -> list[Mapping[str, Any]]:
        return [json.loads(path.read_text()) for path in self._notes(kind)]

    def _notes(self, kind: str) -> Iterator[Path]:
        return self.directory.glob(f"{kind}-*.json")
