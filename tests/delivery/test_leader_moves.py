"""Idempotent producers while leaders move, and the check that would find what went wrong.

The Java producer has the same in `interop/test_leader_moves.py`; runs of 500 moves are in ADR 20.
"""

import pytest

from tests.delivery.leader_moves import Outcome, check, written_while_leaders_move
from tests.delivery.numbered_writers import Written
from tests.delivery.seeds import Seeded

MOVES = 30


@pytest.mark.parametrize("client", ["librdkafka", "aiokafka"])
def test_nothing_is_lost_doubled_or_reordered_while_leaders_move(client: str, chance: Seeded) -> None:
    outcome = written_while_leaders_move(client, MOVES, chance.dice)
    assert outcome.is_clean, outcome
    assert outcome.acknowledged


def test_the_check_finds_what_is_lost_doubled_and_out_of_order() -> None:
    written = Written()
    written.acknowledged[0] = [0, 1, 2]
    outcome = Outcome()
    check(written, {0: [0, 2, 1]}, outcome)
    assert (outcome.lost, outcome.doubled, outcome.reordered) == ([], [], [(0, 1)])
    outcome = Outcome()
    check(written, {0: [0, 1, 0, 1, 3]}, outcome)
    assert (outcome.lost, outcome.doubled, outcome.reordered) == ([(0, 2)], [(0, 0), (0, 1)], [])
    outcome = Outcome()
    check(written, {0: [0, 1, 2, 3]}, outcome)  # The last was not acknowledged, and may be there.
    assert outcome.is_clean
    written.failed.append("0: 3: SOME_ERROR")
    check(written, {0: [0, 1, 2]}, outcome)
    assert not outcome.is_clean
