"""For users' tests and our own: an embedded broker with faults and a clock to move, a cluster of them, pytest
fixtures, simulated ports.

For example:

    from riverlog.testing import Broker

    with Broker() as broker:
        connect_to(broker.bootstrap_servers)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from riverlog.testing.broker import Broker
    from riverlog.testing.cluster import Cluster
    from riverlog.testing.fault import Asked, Fault
    from riverlog.testing.faults import Faults
    from riverlog.testing.records import Record
    from riverlog.testing.settable_clock import SettableClock

__all__ = ["Asked", "Broker", "Cluster", "Fault", "Faults", "Record", "SettableClock"]

_HOMES: Final = {
    "Asked": "fault",
    "Broker": "broker",
    "Cluster": "cluster",
    "Fault": "fault",
    "Faults": "faults",
    "Record": "records",
    "SettableClock": "settable_clock",
}


def __getattr__(name: str) -> Any:
    """Loaded on first use: pytest imports this package in every run, most of which need no broker."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
