"""What is drawn each from a stream of chance of its own, named by it: faults, and what they need.

A seed that does not get such a fault is the same run as before there was one, so that what is known of a seed
stays true when a fault is added here.
"""

import random
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from riverlog.replication.idle_logs import INTERVAL_MS

_RESTORED_STORE_SHARE: Final = 0.15
_RENUMBERED_STORE_SHARE: Final = 0.1
_OLDER_STORE_PROFILES: Final = ("cluster", "replicas")
_DEAD_DIRECTORY_SHARE: Final = 0.3
_DEAD_DIRECTORY_PROFILES: Final = ("liveness",)
_DIRECTORIES: Final = ("/data", "/more", "/others")
"""A node that keeps its own metadata has it in the first, which it cannot do without."""
_FEW_OPEN_LOGS_SHARE: Final = 0.2
_FEW_OPEN_LOGS_PROFILES: Final = ("standard", "replicas")
_OPEN_LOGS_MAX: Final = (1, 2, 3)
_LEFT_ALONE_S: Final = (12.0, 30.0)
"""A log is closed when nobody has used it from one look to the next."""
_IDLE_LOOKS_MS: Final = (200, 1_000, INTERVAL_MS)
"""The last is what brokers do; with the others logs are closed and opened again all the time."""


class OwnFaults(NamedTuple):
    faults: list[dict[str, Any]]
    settings: dict[str, str]
    """What they need."""
    idle_looks_ms: int = INTERVAL_MS


def draw_own_faults(seed: int, profile: str, chaos_s: float, hosts: Sequence[str]) -> OwnFaults:
    restored = [
        *_draw_older_store("restored_store", _RESTORED_STORE_SHARE, seed, profile, chaos_s),
        *_draw_older_store("renumbered_store", _RENUMBERED_STORE_SHARE, seed, profile, chaos_s),
    ]
    dead = _draw_dead_directory(_chance("dead_directory", seed, profile), profile, chaos_s)
    few = _draw_few_open_logs(_chance("few_open", seed, profile), profile, chaos_s, hosts)
    directories = {"log.dirs": ",".join(_DIRECTORIES)} if dead else {}
    return OwnFaults(restored + dead + few.faults, {**directories, **few.settings}, few.idle_looks_ms)


def _chance(fault: str, seed: int, profile: str) -> random.Random:
    return random.Random(f"{seed} {profile} {fault}")


def _draw_older_store(
    fault: str, share: float, seed: int, profile: str, chaos_s: float
) -> list[dict[str, Any]]:
    chance = _chance(fault, seed, profile)
    if profile not in _OLDER_STORE_PROFILES or chance.random() >= share:
        return []
    at_s = round(chance.uniform(0.1, 0.9) * chaos_s, 3)
    for_s, age_s = round(chance.uniform(0.5, 10), 3), round(chance.uniform(0.5, 20), 3)
    return [{"at_s": at_s, "fault": fault, "for_s": for_s, "age_s": age_s}]


def _draw_dead_directory(chance: random.Random, profile: str, chaos_s: float) -> list[dict[str, Any]]:
    if profile not in _DEAD_DIRECTORY_PROFILES or chance.random() >= _DEAD_DIRECTORY_SHARE:
        return []
    at_s, directory = round(chance.uniform(0, 0.9) * chaos_s, 3), chance.choice(_DIRECTORIES[1:])
    return [{"at_s": at_s, "fault": "dead_directory", "directory": directory, "lasts": True, "hosts": []}]


def _draw_few_open_logs(
    chance: random.Random, profile: str, chaos_s: float, hosts: Sequence[str]
) -> OwnFaults:
    """Few logs may be open, and once or twice most clients rest for long enough that some are closed."""
    if profile not in _FEW_OPEN_LOGS_PROFILES or chance.random() >= _FEW_OPEN_LOGS_SHARE:
        return OwnFaults([], {})
    rests = [
        {
            "at_s": round(chance.uniform(0, 0.7) * chaos_s, 3),
            "fault": "stopped_client",
            "for_s": round(chance.uniform(*_LEFT_ALONE_S), 3),
            "hosts": chance.sample(hosts, chance.randint(len(hosts) // 2, len(hosts))),
        }
        for _ in range(chance.randint(1, 2))
    ]
    settings = {"riverlog.open.logs.max": str(chance.choice(_OPEN_LOGS_MAX))}
    return OwnFaults(rests, settings, chance.choice(_IDLE_LOOKS_MS))
