"""What a reader that waits is told: that the broker is gone or back, that a topic was deleted or made anew.

librdkafka says nothing of a topic that is gone and asks for its records for ever. So the topics are looked at
while no records come, in the background: a look never holds up a record.
"""

import time
from collections.abc import Collection, Mapping
from concurrent.futures import Future, wait
from typing import Any

from riverlog.cli.asking.cluster import begin_describing
from riverlog.cli.asking.connection import Connection
from riverlog.cli.printing.output import remark, warn

LOOK_EVERY_S = 1.0
_GONE = "UNKNOWN_TOPIC_OR_PART"


class Watch:
    """Call `look` whenever nothing has come for a moment, and `heard` when something has."""

    def __init__(self, connection: Connection, topics: Collection[str]) -> None:
        self._connection = connection
        self._topics = list(topics)
        self._ids: dict[str, str] = {}
        self.gone: set[str] = set()
        self._looking: Mapping[str, Future[Any]] = {}
        self._next_look = 0.0
        self._lost_since: float | None = None
        self.look_now()

    def add(self, topic: str) -> None:
        self._topics.append(topic)

    @property
    def lost_s(self) -> float:
        """For how long no broker has been reached."""
        return 0.0 if self._lost_since is None else time.monotonic() - self._lost_since

    def heard(self) -> None:
        if self._lost_since is not None:
            self._lost_since = None
            self._connection.take_loss()  # What another client of ours has said of the same.
            remark("the broker is back")

    def look(self) -> list[str]:
        """Topics of the same name that have taken the place of others since the last look."""
        error = self._connection.take_loss()
        if error is not None and self._lost_since is None:
            self._lost_since = time.monotonic()
            warn(f"the connection is lost ({error.str()}); trying again")
        if self._looking:
            return self._seen() if all(each.done() for each in self._looking.values()) else []
        if self._topics and time.monotonic() >= self._next_look:
            self._looking = begin_describing(self._connection, self._topics)
        return []

    def look_now(self) -> list[str]:
        """As `look`, but waits for the answer."""
        if not self._topics:
            return []
        self._looking = begin_describing(self._connection, self._topics)
        wait(self._looking.values(), self._connection.timeout_s)
        return self._seen()

    def _seen(self) -> list[str]:
        from confluent_kafka import KafkaException

        looked, self._looking = self._looking, {}
        self._next_look = time.monotonic() + LOOK_EVERY_S
        anew: list[str] = []
        for topic, future in looked.items():
            try:
                found = str(future.result().topic_id)
            except KafkaException as error:
                if error.args[0].name() == _GONE:
                    self._note_gone(topic)
                continue
            self.heard()
            if self._note_there(topic, found):
                anew.append(topic)
        return anew

    def _note_gone(self, topic: str) -> None:
        self.heard()
        if topic not in self.gone:
            self.gone.add(topic)
            warn(f"topic {topic} was deleted; waiting for a new one of this name")

    def _note_there(self, topic: str, found: str) -> bool:
        """Whether it is another one than before."""
        before = self._ids.setdefault(topic, found)
        self._ids[topic] = found
        if before == found and topic not in self.gone:
            return False
        if topic not in self.gone:
            warn(f"topic {topic} was deleted")
        self.gone.discard(topic)
        remark(f"topic {topic} is there again, as a new one; it is read from its start")
        return True
