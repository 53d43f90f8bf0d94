"""The port for what blocks: executors are made by name and passed in; no layer has threads of its own.

Whoever makes one shuts it down; whoever is given one only runs work on it, by the event loop's
`run_in_executor`. The real ones are threads (`riverlog.node.adapters.threads`).
"""

from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeAlias

__all__ = ["Executor", "MakeExecutor"]

MakeExecutor: TypeAlias = Callable[[str, int], Executor]
"""From a name for people and the number of threads, which is how much of the work runs at a time."""
