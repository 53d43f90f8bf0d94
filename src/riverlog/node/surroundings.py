"""What a node was given, and what all its parts share: settings, ports, chance, and the stack on which each
thing that is started leaves how it is stopped."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from random import Random
from uuid import UUID

from riverlog.model.clock import Clock
from riverlog.model.config.settings import Settings
from riverlog.model.config.slices import ServerConfig
from riverlog.model.disk import Disk
from riverlog.model.executor import Executor, MakeExecutor
from riverlog.model.metrics import Metrics
from riverlog.model.network import Network
from riverlog.node.live_config import LiveConfig


@dataclass(frozen=True, slots=True)
class Surroundings:
    settings: Settings
    config: ServerConfig
    """The settings of the start."""
    live_config: LiveConfig
    disk: Disk
    clock: Clock
    network: Network
    metrics: Metrics
    random: Random
    new_id: Callable[[], UUID]
    new_executor: MakeExecutor
    boot_id: Callable[[], str]
    is_alone: bool
    """The metadata is the node's own: there are no other brokers, and never will be."""
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    def executor(self, name: str, threads: int) -> Executor:
        """One that is shut down after everything that is started later."""
        executor = self.new_executor(name, threads)
        self.stack.callback(executor.shutdown, cancel_futures=True)
        return executor
