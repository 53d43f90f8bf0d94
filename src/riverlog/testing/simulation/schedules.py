"""Whether a case can be carried out: a `ScheduleError` says what is wrong with it.

What a case says of hosts that it does not have is no error: shrinking leaves clients out, and their faults
with them do nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from riverlog.testing.simulation.faults import (
    FAULTS,
    OF_SEVERAL_DIRECTORIES,
    OF_SEVERAL_NODES,
    WAYS,
    WAYS_TO_LOSE_A_NODE,
)
from riverlog.testing.simulation.machine.links import LinkQuality

_NUMBER: Final = (int, float)
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "at_s": _NUMBER,
    "for_s": _NUMBER,
    "delay_s": _NUMBER,
    "age_s": _NUMBER,
    "rate": _NUMBER,
    "after": (int,),
    "chance": (int,),
    "count": (int,),
    "ms": (int,),
    "node": (int,),
    "room_bytes": (int,),
    "hosts": (list,),
    "directory": (str,),
}
"""Of what a fault is told."""
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {"way": WAYS, "how": WAYS_TO_LOSE_A_NODE}
_CLIENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "admin": (),
    "producer": ("topic", "is_idempotent"),
    "consumer": ("topic",),
    "transactor": ("is_newer",),
    "classic": (),
    "member": (),
}
"""The kinds of clients, and what each has to be told."""


class ScheduleError(Exception):
    """A schedule that cannot be carried out, and why."""


def check_links(links: Mapping[str, float]) -> None:
    known = [each.name for each in fields(LinkQuality)]
    for name, value in links.items():
        if name not in known:
            raise ScheduleError(f"links have no {name}; they have {', '.join(known)}")
        if not isinstance(value, _NUMBER) or value < 0:
            raise ScheduleError(f"{name} of links is a number, and not {value!r}")


def check_clients(clients: Sequence[Mapping[str, Any]], topics: Mapping[str, int]) -> None:
    names: set[str] = set()
    for client in clients:
        kind, name = str(client.get("kind")), client.get("name")
        if kind not in _CLIENTS:
            raise ScheduleError(f"unknown kind of client {kind!r}; the kinds are {', '.join(_CLIENTS)}")
        if not isinstance(name, str) or name in names:
            raise ScheduleError(f"each client has a name of its own, and one of kind {kind} has {name!r}")
        names.add(name)
        missing = [each for each in _CLIENTS[kind] if each not in client]
        if missing:
            raise ScheduleError(f"the client {name} lacks {', '.join(missing)}")
        if client.get("topic", next(iter(topics))) not in topics:
            topic = client["topic"]
            raise ScheduleError(f"the client {name} uses {topic!r}; the topics are {', '.join(topics)}")


def check_fault(fault: Mapping[str, Any], *, chaos_s: float, nodes: int, directories: Sequence[str]) -> None:
    """`chaos_s`, `nodes` and `directories` are the case's."""
    name = str(fault.get("fault"))
    if name not in FAULTS:
        raise ScheduleError(f"unknown fault {name!r}; the faults are {', '.join(sorted(FAULTS))}")
    missing = [each for each in ("at_s", *FAULTS[name][1]) if each not in fault]
    if missing:
        raise ScheduleError(f"the fault {name} lacks {', '.join(missing)}")
    _check_values(name, fault)
    if fault["at_s"] < 0 or fault.get("for_s", 0) < 0:
        raise ScheduleError(f"the fault {name} begins or lasts before time: {dict(fault)}")
    if fault["at_s"] > chaos_s:
        raise ScheduleError(f"the fault at {fault['at_s']} s is after the chaos of {chaos_s} s")
    if nodes == 1 and name in OF_SEVERAL_NODES:
        raise ScheduleError(f"the fault {name} needs several nodes")
    if not 0 <= fault.get("node", 0) < nodes:
        raise ScheduleError(f"the case has no node {fault['node']}")
    if name in OF_SEVERAL_DIRECTORIES:
        directory = fault["directory"]
        if directory not in directories or len(directories) == 1:
            raise ScheduleError(
                f"{directory} is not one of several directories of the case: {list(directories)}"
            )


def _check_values(name: str, fault: Mapping[str, Any]) -> None:
    for key, value in fault.items():
        if key in _TYPES and not isinstance(value, _TYPES[key]):
            wanted = " or ".join(each.__name__ for each in _TYPES[key])
            raise ScheduleError(f"{key} of the fault {name} is of type {wanted}, and not {value!r}")
        if key in _CHOICES and value not in _CHOICES[key]:
            known = ", ".join(_CHOICES[key])
            raise ScheduleError(f"{key} of the fault {name} is one of {known}, and not {value!r}")
