"""The idempotent Java producer while leaders move; others: `tests/delivery/test_leader_moves.py`."""

import random

from tests.delivery.leader_moves import written_while_leaders_move

MOVES = 60
SEED = 2026


def test_the_java_producer_loses_doubles_and_reorders_nothing_while_leaders_move() -> None:
    outcome = written_while_leaders_move("java", MOVES, random.Random(SEED))
    assert outcome.is_clean, outcome
    assert outcome.acknowledged
