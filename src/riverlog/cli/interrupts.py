"""Holding back Ctrl-C while the client library may call us.

KeyboardInterrupt raised inside a callback is lost in confluent-kafka, and its poll then fails with a
SystemError. So the signal waits outside while callbacks are served, which is never for long.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message, Producer


@contextmanager
def postponed() -> Iterator[None]:
    """An interrupt that comes during the block is raised at its end."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def serve(producer: "Producer", seconds: float) -> None:
    """Let the producer report deliveries, for so long if there are none."""
    with postponed():
        producer.poll(seconds)


def next_message(consumer: "Consumer", seconds: float) -> "Message | None":
    with postponed():
        return consumer.poll(seconds)
