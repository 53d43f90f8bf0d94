"""Topics as they were last encoded for a Metadata response, kept until they change, as far as there is room.

Consoles ask for all of them again and again, and hardly any has changed since. Topics of an image that are
still the same are the same object, so that looking costs nothing. What was not asked for longest goes first.
"""

from typing import Final, NamedTuple

from riverlog.metadata.image import TopicImage
from riverlog.model.ids import NodeId
from riverlog.wire.messages.metadata import MetadataResponseTopic

BYTES_MAX: Final = 8 * 1024**2
_OVERHEAD_BYTES: Final = 500  # Of an entry, beside what is encoded.


class Form(NamedTuple):
    """In which way a topic is told; beside it, only the topic itself matters."""

    version: int
    reachable: frozenset[NodeId]
    brokers: frozenset[NodeId]
    shows_operations: bool


class EncodedTopics:
    __slots__ = ("_bytes_max", "_kept", "size_bytes")

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._kept: dict[tuple[str, Form], tuple[TopicImage, MetadataResponseTopic, int]] = {}
        self.size_bytes = 0

    def get(self, topic: TopicImage, form: Form) -> MetadataResponseTopic | None:
        """As `encoded_element` has made it."""
        found = self._kept.pop((topic.name, form), None)
        if found is None:
            return None
        if found[0] is not topic:
            self.size_bytes -= found[2]
            return None
        self._kept[topic.name, form] = found
        return found[1]

    def keep(self, topic: TopicImage, form: Form, encoded: MetadataResponseTopic) -> None:
        key = (topic.name, form)
        if (before := self._kept.pop(key, None)) is not None:
            self.size_bytes -= before[2]
        # The old image of a changed topic stays as long as what was encoded of it.
        size = len(encoded) + 8 * len(topic.partitions) + _OVERHEAD_BYTES  # type: ignore[arg-type]
        self._kept[key] = (topic, encoded, size)
        self.size_bytes += size
        while self.size_bytes > self._bytes_max:
            self.size_bytes -= self._kept.pop(next(iter(self._kept)))[2]
