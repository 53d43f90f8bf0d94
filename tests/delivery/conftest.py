"""A failure of a random run ends with its seed and the command that replays it."""

import pytest

from tests.delivery.seeds import Seeded, seeded


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> Seeded:
    found = seeded(request)
    print(f"seed {found.seed}; replay with: {found.replay}")  # noqa: T201 - pytest shows it on failure
    return found
