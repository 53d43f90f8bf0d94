"""What a fault is applied to."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from riverlog.testing.simulation.machine.ensembles import SharedEnsemble
from riverlog.testing.simulation.nodes import SimulatedNode
from riverlog.testing.simulation.world import World


class Scene(Protocol):
    """What a fault is applied to."""

    world: World
    node: SimulatedNode
    """The one that the fault is about."""
    nodes: Sequence[SimulatedNode]
    ensemble: SharedEnsemble | None
    """Where there are several nodes."""

    def later(self, after_s: float, undo: Callable[[], None]) -> None:
        """After a while, or when everything heals."""
        ...

    def bring_up(self, node: SimulatedNode, after_s: float) -> None:
        """Have it started again."""
        ...

    def restart_client(self, name: str) -> None: ...

    def note_loss(self, node: SimulatedNode, *, of_a_disk: bool = False) -> None:
        """Its disk is about to lose what is not synced, or has lost everything."""
        ...


Apply = Callable[[Scene, Mapping[str, Any]], None]
