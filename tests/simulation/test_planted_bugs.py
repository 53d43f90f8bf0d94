"""Each planted bug is found by the invariant that it breaks, not by a crash and not by a time-out."""

from pathlib import Path

import pytest

from tests.simulation.planting import PlantedBug, plant, planted_bugs, simulate, simulate_case

_MORE_SEEDS = 30
_CHANCES = 20


@pytest.mark.parametrize("bug", planted_bugs(), ids=lambda bug: bug.name)
def test_a_planted_bug_is_found_by_its_invariant(bug: PlantedBug, tmp_path: Path) -> None:
    """In the case that is kept of it, or in its seed; since the broker changes, perhaps in a later one."""
    sources = plant(bug, tmp_path)
    if bug.case is not None and bug.is_found(simulate_case(sources, bug.case, _CHANCES)):
        return
    said = simulate(sources, bug.profile, str(bug.seed))
    if not bug.is_found(said):
        said = simulate(sources, bug.profile, f"{bug.seed + 1}-{bug.seed + _MORE_SEEDS}")
    assert bug.is_found(said), said
