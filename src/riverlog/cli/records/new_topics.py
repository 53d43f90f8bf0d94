"""Topics that appear while a reading goes on, and match one of its patterns.

The cluster is asked every second, in a thread, so that nothing that is read waits for the answer. A failure
is no news: whether the broker is there is watched elsewhere.
"""

import time
from collections.abc import Collection, Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from riverlog.cli.asking.connection import Connection
from riverlog.cli.failures import CommandError
from riverlog.cli.records.wanted import matches

LOOK_EVERY_S = 1.0


class NewTopics:
    def __init__(self, connection: Connection, patterns: Collection[str], known: Iterable[str]) -> None:
        self._connection = connection
        self._patterns = tuple(patterns)
        self._known = set(known)
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="new-topics") if patterns else None
        self._looking: Future[list[str]] | None = None
        self._next_look = time.monotonic() + LOOK_EVERY_S

    def take(self) -> list[str]:
        """Those that were not there at the last call; costs nothing most of the time."""
        if self._executor is None:
            return []
        if self._looking is None:
            if time.monotonic() >= self._next_look:
                self._looking = self._executor.submit(self._look)
            return []
        if not self._looking.done():
            return []
        looked, self._looking = self._looking, None
        self._next_look = time.monotonic() + LOOK_EVERY_S
        found = [topic for topic in looked.result() if topic not in self._known]
        self._known.update(found)
        return found

    def close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)

    def _look(self) -> list[str]:
        from confluent_kafka import KafkaException

        try:
            topics = self._connection.admin().list_topics(timeout=LOOK_EVERY_S).topics
        except (KafkaException, CommandError):
            return []
        return sorted(
            name
            for name, topic in topics.items()
            if topic.error is None and any(matches(name, each) for each in self._patterns)
        )
