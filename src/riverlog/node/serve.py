"""Runs a node as a process of its own until it is told to stop: what `riverlog serve` does.

Stdout gets one line, when requests are taken; everything else goes to stderr. SIGTERM and SIGINT stop the
node cleanly; once that has begun, further ones change nothing.
"""

import asyncio
import logging
import os
import signal
import sys

from riverlog import __version__
from riverlog.model.config.settings import Settings
from riverlog.model.errors import StorageError
from riverlog.node.adapters.system_clock import SystemClock
from riverlog.node.adapters.threads import thread_executor
from riverlog.node.descriptors import raise_limit
from riverlog.node.node import Node
from riverlog.node.processes.broker_number import with_broker_number
from riverlog.node.processes.event_loop import collect_rarely, run_on_loop
from riverlog.node.processes.log_lines import log_to_stderr
from riverlog.node.processes.loop_watch import LoopWatch

_logger = logging.getLogger(__name__)
_INPUT_BYTES = 4096
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run(settings: Settings, *, log_level: str = "INFO", is_supervised: bool = False) -> None:
    """Serve until SIGTERM or SIGINT, or until standard input ends if `is_supervised`: its other end is the
    supervisor's. Raises `RiverlogError` or `OSError` when the node cannot start."""
    log_to_stderr(log_level, f"broker-{settings.static['node.id']}" if is_supervised else "")
    raise_limit()
    for warning in settings.warnings:
        _logger.warning("%s", warning)
    run_on_loop(lambda: _serve(settings, is_supervised))


async def _serve(settings: Settings, is_supervised: bool) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, stopped.set)
    if is_supervised:
        loop.add_reader(sys.stdin.fileno(), _stop_at_end_of_input, stopped)
    node = await _start_unless(stopped, settings)
    if node is None:
        _logger.info("stopped before it was ready")
        return
    watch = LoopWatch(SystemClock(), node.metrics, lambda: node.open_logs)
    watch.start()
    collect_rarely()
    try:
        _logger.info(
            "riverlog %s, cluster %s, data in %s",
            __version__,
            node.cluster_id,
            ", ".join(node.config.log_dirs),
        )
        sys.stdout.write(f"riverlog ready on {next(iter(node.addresses.values()))}\n")
        sys.stdout.flush()
        await _first_of(stopped, node.has_failed)
        _logger.info("stopping")
    finally:
        watch.stop()
        await node.stop(clean=not node.has_failed.is_set())
        _ignore_signals(loop)
    if node.has_failed.is_set():
        raise StorageError("All data directories have failed. Check the disks, then start the broker again.")
    _logger.info("stopped")


def _ignore_signals(loop: asyncio.AbstractEventLoop) -> None:
    """The loop, when it is closed, would let the next one kill the process, and so would the moment in which
    it gives them up."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
    for number in _STOP_SIGNALS:
        loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)


async def _first_of(*events: asyncio.Event) -> None:
    waits = [asyncio.create_task(each.wait()) for each in events]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()


async def _start_unless(stopped: asyncio.Event, settings: Settings) -> Node | None:
    """None when it is told to stop first: a start can wait for long, as for ZooKeeper, and is given up."""
    starting, told = asyncio.create_task(_start(settings)), asyncio.create_task(stopped.wait())
    await asyncio.wait((starting, told), return_when=asyncio.FIRST_COMPLETED)
    told.cancel()
    if starting.done():
        return await starting
    starting.cancel()
    [outcome] = await asyncio.gather(starting, return_exceptions=True)
    if isinstance(outcome, Node):  # It was ready in the same moment.
        await outcome.stop()
    return None


async def _start(settings: Settings) -> Node:
    node = Node(await with_broker_number(settings, thread_executor))
    await node.start()
    return node


def _stop_at_end_of_input(stopped: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), _INPUT_BYTES):
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        stopped.set()
