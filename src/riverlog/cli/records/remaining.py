"""How far a reading has come in each partition, and what is still to come of one that has an end. No I/O."""

from collections.abc import Iterable

from riverlog.cli.asking.cluster import Place
from riverlog.cli.asking.positions import Reading


class Remaining:
    """`positions` are the offsets to be read next, `ends` where a partition was found to end."""

    def __init__(self, readings: Iterable[Reading]) -> None:
        known = list(readings)
        self.positions = {each.place: each.first_offset for each in known}
        self.ends: dict[Place, int] = {}
        self._goals = {each.place: each.end_offset for each in known}
        self._bounds = {each.place: each.end_offset for each in known if each.is_bounded}

    @property
    def unfinished(self) -> list[Place]:
        """Those of which something is still to come that was there when the reading began."""
        return [place for place, goal in self._goals.items() if self.positions[place] < goal]

    @property
    def passed_ends(self) -> dict[Place, int]:
        """Where partitions ended when the reading began, of those whose end was read before it was told."""
        return {
            place: goal
            for place, goal in self._goals.items()
            if place not in self._bounds and self.positions[place] >= goal
        }

    @property
    def record_count(self) -> int:
        """How many offsets there were to read, or fewer records: some belong to none."""
        return sum(max(0, goal - self.positions[place]) for place, goal in self._goals.items())

    def is_at_end(self, places: Iterable[Place]) -> bool:
        return all(place in self.ends for place in places)

    def is_beyond(self, place: Place, offset: int) -> bool:
        """Whether a record is behind the end that was asked for, not only behind what was there."""
        return place in self._bounds and offset >= self._bounds[place]

    def note_beyond(self, place: Place) -> None:
        """All that was asked for of a partition has been read."""
        self._goals.pop(place, None)

    def note_record(self, place: Place, offset: int) -> None:
        self.positions[place] = offset + 1
        self.ends.pop(place, None)

    def note_end(self, place: Place, offset: int) -> None:
        """Also where the last offsets belong to no record (markers), or to none that may be read yet."""
        self.positions[place] = offset
        self.ends[place] = offset
        self._goals.pop(place, None)

    def add(self, readings: Iterable[Reading]) -> None:
        """Partitions of a topic that was not there when the reading began, and that has no end for it."""
        self.positions |= {each.place: each.first_offset for each in readings}

    def begin_anew(self, readings: Iterable[Reading]) -> None:
        """Another topic has taken the name of one that was read."""
        for each in readings:
            self.positions[each.place] = each.first_offset
            self.ends.pop(each.place, None)
