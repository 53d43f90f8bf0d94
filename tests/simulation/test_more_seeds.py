"""More seeds of the simulator than every run of the tests has time for; `test_swarm` has the first ones."""

import pytest

from tests.simulation.seeds import operations_of

RANGES = [(30, 39), (40, 49), (50, 59), (60, 69), (70, 79), (80, 89), (90, 99)]


@pytest.mark.parametrize(("first", "last"), RANGES)
def test_no_promise_is_broken(first: int, last: int) -> None:
    assert operations_of(first, last) > 0
