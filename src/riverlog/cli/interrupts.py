"""Ctrl-C and SIGTERM: held back while the client library may call us, and heeded once.

KeyboardInterrupt raised inside a callback is lost in confluent-kafka, and its poll then fails with a
SystemError. So the signals wait outside while callbacks are served, which is never for long.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message, Producer

_ENDING: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def postponed() -> Iterator[None]:
    """An interrupt that comes during the block is raised at its end."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def heeded_once() -> Iterator[None]:
    """SIGTERM interrupts as Ctrl-C does. Whatever comes after the first changes nothing any more: the end is
    under way, and takes the moment that a group needs to be left."""
    before = {number: signal.signal(number, _interrupt) for number in _ENDING}
    try:
        yield
    finally:
        # Not after an interrupt: the program ends, and a second one would spoil its last steps.
        if signal.getsignal(signal.SIGINT) is _interrupt:
            for number, handler in before.items():
                signal.signal(number, handler)


def heed_no_more() -> None:
    """From here on the program only ends."""
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)


def _interrupt(number: int, frame: FrameType | None) -> None:
    heed_no_more()
    raise KeyboardInterrupt


def serve(producer: "Producer", seconds: float) -> None:
    """Let the producer report deliveries, for so long if there are none."""
    with postponed():
        producer.poll(seconds)


def next_message(consumer: "Consumer", seconds: float) -> "Message | None":
    with postponed():
        return consumer.poll(seconds)
