"""For users' tests and our own: an embedded broker, pytest fixtures, simulated ports.

For example:

    from riverlog.testing import Broker

    with Broker() as broker:
        connect_to(broker.bootstrap_servers)
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from riverlog.testing.broker import Broker

__all__ = ["Broker"]


def __getattr__(name: str) -> Any:
    """Loaded on first use: pytest imports this package in every run, most of which need no broker."""
    if name == "Broker":
        from riverlog.testing.broker import Broker

        return Broker
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
