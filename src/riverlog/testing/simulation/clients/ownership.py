"""Who owns which partition in which generation of a classic group, as the members were told (I12)."""

from riverlog.testing.simulation.violations import Violation


class Ownership:
    def __init__(self) -> None:
        self._owners: dict[tuple[str, int, int], dict[int, str]] = {}

    def assigned(self, group: str, life: int, generation: int, member_id: str, partitions: list[int]) -> None:
        """`life` is of the log that the generation stands in: a power cut may take generations back."""
        owners = self._owners.setdefault((group, life, generation), {})
        for index in partitions:
            owner = owners.setdefault(index, member_id)
            if owner != member_id:
                what = f"partition {index} belongs to {owner} and to {member_id}"
                raise Violation("I12", f"{group}, generation {generation}: {what}")
