"""What a broker leaves behind when it has stopped by itself: nothing (I18).

Looked at in the moment between its last callback and the end of its process.
"""

import gc

from riverlog.testing.simulation.machine.loop import VirtualLoop
from riverlog.testing.simulation.nodes import ObservedNode, SimulatedNode
from riverlog.testing.simulation.violations import Violation


def check_left_over(loop: VirtualLoop, node: SimulatedNode, parts: ObservedNode) -> None:
    tasks = [task.get_name() for task in node.unfinished()]
    if tasks:
        raise Violation("I18", f"after the broker has stopped these tasks run: {tasks}")
    timers = loop.timers_of(node.life)
    if timers:
        raise Violation("I18", f"after the broker has stopped these are still to come: {timers}")
    for partition in parts.replicas:
        waiting = len(partition._waits.readers) + len(partition._waits.producers)
        if waiting:
            what = f"after the broker has stopped {waiting} wait for {partition.topic_partition}"
            raise Violation("I18", what)
    if node.disk.open_files():
        gc.collect()  # An error that somebody has caught may hold a file until its traceback is collected.
    files = node.disk.open_files()
    if files:
        raise Violation("I18", f"after the broker has stopped these files are open: {files}")
