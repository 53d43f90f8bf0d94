"""A smaller case with the same violation: ddmin over the faults, then over the clients, then a shorter chaos.

The same violation is one of the same invariant. Chance is drawn by purpose, so that a fault left out does not
change what the others do, as far as they do not depend on each other.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from riverlog.testing.simulation.cases import Case


def shrink(case: Case, invariant_of: Callable[[Case], str | None], tries_max: int = 300) -> Case:
    """`invariant_of` runs a case and names the invariant that broke, or None."""
    wanted = invariant_of(case)
    if wanted is None:
        return case
    case = replace(case, operations_min=0)
    tries = 0

    def still_fails(candidate: Case) -> bool:
        nonlocal tries
        tries += 1
        return tries <= tries_max and invariant_of(candidate) == wanted

    kept = _ddmin(case.faults, lambda some: still_fails(replace(case, faults=some)))
    case = replace(case, faults=kept)
    clients = _ddmin(case.clients, lambda some: still_fails(replace(case, clients=some)))
    case = replace(case, clients=clients)
    last_s = max((each["at_s"] for each in case.faults), default=0.0)
    shorter = replace(case, chaos_s=round(last_s + 1.0, 3))
    return shorter if shorter.chaos_s < case.chaos_s and still_fails(shorter) else case


def _ddmin(items: list[Any], fails: Callable[[list[Any]], bool]) -> list[Any]:
    """The smallest part that can be found which still fails: without one piece after the other, the pieces
    getting smaller."""
    if items and fails([]):
        return []
    pieces = 2
    while len(items) >= 2:
        size = max(len(items) // pieces, 1)
        for start in range(0, len(items), size):
            rest = items[:start] + items[start + size :]
            if rest and fails(rest):
                items, pieces = rest, max(pieces - 1, 2)
                break
        else:
            if size == 1:
                break
            pieces = min(pieces * 2, len(items))
    return items
