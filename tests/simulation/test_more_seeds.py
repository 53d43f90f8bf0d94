"""More seeds of the simulator than every run of the tests has time for; `test_swarm` has the first ones.

140 are the same in every run. 60 follow from the commit, so that every commit looks at others and a second
run of it at the same.
"""

import hashlib
import subprocess
from pathlib import Path

import pytest

from tests.simulation.seeds import operations_of

_FIXED = [(first, first + 9) for first in range(60, 200, 10)]
_FIRST_DRAWN, _LAST_DRAWN = 10_000, 1_000_000


def _drawn() -> list[tuple[int, int]]:
    here = Path(__file__).parent
    told = subprocess.run(["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, check=False).stdout
    number = int.from_bytes(hashlib.sha256(told).digest()[:8], "big")
    start = _FIRST_DRAWN + number % (_LAST_DRAWN - _FIRST_DRAWN)
    return [(start + piece, start + piece + 9) for piece in range(0, 60, 10)]


@pytest.mark.parametrize(("first", "last"), _FIXED)
def test_no_promise_is_broken(first: int, last: int) -> None:
    assert operations_of(first, last) >= 600 * (last - first + 1)


@pytest.mark.parametrize("piece", range(6))
def test_no_promise_is_broken_in_seeds_drawn_from_the_commit(piece: int) -> None:
    first, last = _drawn()[piece]
    assert operations_of(first, last) >= 600 * (last - first + 1), f"seeds {first}-{last}"


@pytest.mark.parametrize("first", range(6, 36, 6))
def test_no_promise_is_broken_by_replicas(first: int) -> None:
    assert operations_of(first, first + 5, "replicas") >= 300 * 6


def test_no_promise_is_broken_while_leaders_move_all_the_time() -> None:
    assert operations_of(4, 7, "failovers") >= 150 * 4


def test_a_majority_goes_on_without_nodes_that_are_lost_for_ever() -> None:
    assert operations_of(3, 8, "core") >= 300 * 6
