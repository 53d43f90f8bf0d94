"""Each planted bug is found by the invariant that it breaks, not by a crash and not by a time-out."""

from pathlib import Path

import pytest

from tests.simulation.planting import PlantedBug, plant, planted_bugs, simulate

_MORE_SEEDS = 30


@pytest.mark.parametrize("bug", planted_bugs(), ids=lambda bug: bug.name)
def test_a_planted_bug_is_found_by_its_invariant(bug: PlantedBug, tmp_path: Path) -> None:
    """In its seed; where the broker has changed since that was noted, in one of the next."""
    sources = plant(bug, tmp_path)
    found = f"BROKEN {bug.invariant}: "
    said = simulate(sources, bug.profile, str(bug.seed))
    if found not in said:
        said = simulate(sources, bug.profile, f"{bug.seed + 1}-{bug.seed + _MORE_SEEDS}")
    assert found in said, said
