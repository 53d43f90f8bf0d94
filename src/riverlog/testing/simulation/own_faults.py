"""Faults that are drawn each from a stream of chance of its own, named by the fault.

A seed that does not get such a fault is the same run as before there was one, so that what is known of a seed
stays true when a fault is added here.
"""

import random
from typing import Any, Final

_RESTORED_STORE_SHARE: Final = 0.15
_RESTORED_STORE_PROFILES: Final = ("cluster", "replicas")


def draw_own_faults(seed: int, profile: str, chaos_s: float) -> list[dict[str, Any]]:
    return _draw_restored_store(_chance("restored_store", seed, profile), profile, chaos_s)


def _chance(fault: str, seed: int, profile: str) -> random.Random:
    return random.Random(f"{seed} {profile} {fault}")


def _draw_restored_store(chance: random.Random, profile: str, chaos_s: float) -> list[dict[str, Any]]:
    if profile not in _RESTORED_STORE_PROFILES or chance.random() >= _RESTORED_STORE_SHARE:
        return []
    at_s = round(chance.uniform(0.1, 0.9) * chaos_s, 3)
    for_s, age_s = round(chance.uniform(0.5, 10), 3), round(chance.uniform(0.5, 20), 3)
    return [{"at_s": at_s, "fault": "restored_store", "for_s": for_s, "age_s": age_s}]
