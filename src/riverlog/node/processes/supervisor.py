"""Runs several brokers as processes of their own until it is told to stop: what `serve --brokers N` does.

Stdout gets one line, when every broker takes requests. A broker that ends without being told to is started
again, at once the first time and ever later when it does not last. SIGTERM and SIGINT stop all of them, at
the same time and cleanly; who has not stopped in time, or when the signal comes again, is killed. A broker
has the other end of a pipe as its standard input and stops when that ends, so that none outlives this
process. Not here: what a broker's settings are (`members`).
"""

import asyncio
import contextlib
import logging
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from typing import Any, Final

from riverlog.model.errors import RiverlogError
from riverlog.model.ids import NodeId

READY: Final = "riverlog ready on "
_LASTING_S: Final = 60.0
_FIRST_DELAY_S: Final = 0.2
_DELAY_MAX_S: Final = 30.0
STOP_S: Final = 60.0
"""How long a broker may take to stop."""

_logger = logging.getLogger(__name__)


class BrokerFailedError(RiverlogError):
    """A broker could not start, or did not stop cleanly; what it said is on standard error."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(f"{message} ({_told(exit_code)}); see its lines above.")
        self.exit_code = exit_code


class Child:
    """One broker, through all the processes that it has in the course of time."""

    def __init__(self, node_id: NodeId, command: Callable[[str | None], Sequence[str]]) -> None:
        """`command` makes the command line, from the address that it had before if it had one."""
        self.node_id = node_id
        self._command = command
        self._address: str | None = None
        self._process: Process | None = None
        self._stopping = asyncio.Event()
        self._is_killed = False

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self) -> str:
        """Its address, when it takes requests. Raises `BrokerFailedError`."""
        self._process = process = await asyncio.create_subprocess_exec(
            *self._command(self._address),
            stdin=PIPE,
            stdout=PIPE,
            # A key on the terminal is for the supervisor, which then says it to all of them once.
            start_new_session=True,
        )
        if self._stopping.is_set():
            self._terminate()
        assert process.stdout is not None
        line = (await process.stdout.readline()).decode()
        if not line.startswith(READY):
            raise BrokerFailedError(f"Broker {self.node_id} did not start", await process.wait())
        self._address = line.removeprefix(READY).strip()
        return self._address

    async def keep_running(self) -> None:
        """Start it again whenever it ends, until it is stopped."""
        loop = asyncio.get_running_loop()
        delay_s = 0.0
        while True:
            since_s = loop.time()
            code = await self.wait()
            if self._stopping.is_set():
                return
            delay_s = 0.0 if loop.time() - since_s > _LASTING_S else delay_s
            level = logging.ERROR if code else logging.INFO  # Who stops one in order wants it started anew.
            ended = "broker %d ended (%s), started again in %.1f s"
            _logger.log(level, ended, self.node_id, _told(code), delay_s)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), delay_s)
                return
            delay_s = min(max(2 * delay_s, _FIRST_DELAY_S), _DELAY_MAX_S)
            try:
                address = await self.start()
            except (BrokerFailedError, OSError) as error:
                _logger.error("%s", error)
            else:
                _logger.info("broker %d is ready again on %s", self.node_id, address)

    async def wait(self) -> int:
        assert self._process is not None
        return await self._process.wait()

    async def stopped(self) -> int:
        """The exit code of its last process, 0 if there was none. One that was told to stop before it could
        hear of it had not begun anything either."""
        code = 0 if self._process is None else await self._process.wait()
        return 0 if self._address is None and code == -signal.SIGTERM else code

    def stop(self) -> None:
        self._stopping.set()
        self._terminate()

    def kill(self) -> None:
        self._is_killed = True
        self._terminate()

    def _terminate(self) -> None:
        if self._process is None or self._process.returncode is not None:
            return
        if self._is_killed:
            self._process.kill()
        else:
            self._process.terminate()
            # One that is stopped (SIGSTOP) hears of it only when it goes on.
            self._process.send_signal(signal.SIGCONT)


async def supervise(children: Sequence[Child], *, stop_s: float = STOP_S) -> None:
    """Return when told to stop and all have stopped, or are killed after `stop_s`. Raises
    `BrokerFailedError`."""
    loop = asyncio.get_running_loop()
    stopping: asyncio.Future[None] = loop.create_future()
    hurried: asyncio.Future[None] = loop.create_future()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _on_signal, stopping, hurried)
    starts = [asyncio.create_task(child.start()) for child in children]
    runs: list[asyncio.Task[None]] = []
    try:
        ready = await _all_or_stop(starts, stopping)
        if ready is not None:
            sys.stdout.write(f"{READY}{','.join(ready)}\n")
            sys.stdout.flush()
            runs += (asyncio.create_task(child.keep_running()) for child in children)
            await stopping
            _logger.info("stopping %d brokers", len(children))
    finally:
        codes = await _stop(children, [*starts, *runs], hurried, stop_s)
    for node_id, code in codes.items():
        if code:
            raise BrokerFailedError(f"Broker {node_id} did not stop cleanly", code)
    _logger.info("stopped")


async def _stop(
    children: Sequence[Child],
    tasks: Sequence["asyncio.Task[Any]"],
    hurried: "asyncio.Future[None]",
    stop_s: float,
) -> dict[NodeId, int]:
    """The exit codes of all of them."""
    for child in children:
        child.stop()
    ends = asyncio.create_task(_ends(children, tasks))
    either: list[asyncio.Future[Any]] = [ends, hurried]
    await asyncio.wait(either, timeout=stop_s, return_when=asyncio.FIRST_COMPLETED)
    if not ends.done():
        why = "a second signal came" if hurried.done() else f"{stop_s:.0f} s have passed"
        left = ", ".join(str(child.node_id) for child in children if child.is_running)
        _logger.error("%s, and brokers that have not stopped are killed: %s", why, left)
        for child in children:
            child.kill()
    return await ends


async def _ends(children: Sequence[Child], tasks: Sequence["asyncio.Task[Any]"]) -> dict[NodeId, int]:
    await asyncio.gather(*tasks, return_exceptions=True)
    return {child.node_id: await child.stopped() for child in children}


async def _all_or_stop(
    starts: Sequence["asyncio.Task[str]"], stopping: "asyncio.Future[None]"
) -> list[str] | None:
    """What all of them came to, or None if the stop came first. Raises what the first one that failed did."""
    starting = asyncio.create_task(asyncio.wait(starts, return_when=asyncio.FIRST_EXCEPTION))
    either: list[asyncio.Future[Any]] = [starting, stopping]
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if stopping.done():
        starting.cancel()  # The starts themselves go on, so that no process is left behind.
        return None
    for each in starting.result()[0]:
        each.result()
    return [each.result() for each in starts]


def _on_signal(*futures: "asyncio.Future[None]") -> None:
    """The first signal ends the first one, the second the next."""
    left = [each for each in futures if not each.done()]
    if left:
        left[0].set_result(None)


def _told(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
