"""Damage that was come upon in a data directory: told once for each place, and counted.

A place is a file and a position; readers that come back to it find it known. What is done about it is the
business of whoever came upon it: a log file fails the read, an index is passed over.
"""

import logging
from typing import Final

from riverlog.model.errors import DamagedLogError

_KNOWN_MAX: Final = 10_000
_logger = logging.getLogger(__name__)


class DamageReports:
    """Used by any thread: a place that two come upon at once may be told twice.

    `with` it, damage that ends the block is noted and passed on.
    """

    __slots__ = ("_known", "count")

    def __init__(self) -> None:
        self._known: set[tuple[str, int]] = set()
        self.count = 0
        """How many places were found since the start."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, DamagedLogError):
            self.note(error)

    def note(self, damage: DamagedLogError) -> None:
        """Records are lost unless the file is restored."""
        if self._is_new(damage.path, damage.position):
            _logger.error("%s: %s", _partition_of(damage.path), damage)

    def note_index(self, path: str, position: int, what: str) -> None:
        """An index disagrees with its log, which goes on being read without it, slower."""
        if self._is_new(path, position):
            _logger.error(
                "%s: %s is damaged at byte %d: %s. It is passed over there, and nothing is lost; to have it "
                "rebuilt, remove it while the broker is stopped",
                _partition_of(path),
                path,
                position,
                what,
            )

    def _is_new(self, path: str, position: int) -> bool:
        place = (path, position)
        if place in self._known or len(self._known) >= _KNOWN_MAX:
            return False
        self._known.add(place)
        self.count += 1
        return True


def _partition_of(path: str) -> str:
    return path.rpartition("/")[0].rpartition("/")[2]
