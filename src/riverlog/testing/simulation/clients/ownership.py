"""What the members of groups were told: who owns which partition in which generation of a classic group, and
which generation or member epoch is the newest. Whoever claims an older one is refused (I12)."""

from riverlog.testing.simulation.violations import Violation


class Ownership:
    def __init__(self) -> None:
        self._owners: dict[tuple[str, int, int], dict[int, str]] = {}
        self._newest: dict[tuple[str, int, str], int] = {}

    def assigned(self, group: str, life: int, generation: int, member_id: str, partitions: list[int]) -> None:
        """`life` is of the log that the generation stands in: a power cut may take generations back."""
        owners = self._owners.setdefault((group, life, generation), {})
        for index in partitions:
            owner = owners.setdefault(index, member_id)
            if owner != member_id:
                what = f"partition {index} belongs to {owner} and to {member_id}"
                raise Violation("I12", f"{group}, generation {generation}: {what}")

    def told(self, group: str, life: int, epoch: int, member_id: str = "") -> None:
        """A generation of the group has begun, or with a member an epoch of that member."""
        key = (group, life, member_id)
        self._newest[key] = max(self._newest.get(key, -1), epoch)

    def newest(self, group: str, life: int, member_id: str = "") -> int:
        return self._newest.get((group, life, member_id), -1)
