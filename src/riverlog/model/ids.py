"""Names and numbers that identify things, as types of their own so that they cannot be mixed up."""

from typing import NamedTuple, NewType
from uuid import UUID

NodeId = NewType("NodeId", int)
TopicId = NewType("TopicId", UUID)
LeaderEpoch = NewType("LeaderEpoch", int)
Offset = NewType("Offset", int)
ProducerId = NewType("ProducerId", int)


class TopicPartition(NamedTuple):
    """One partition of one topic by name; `str()` gives the name of its directory on disk."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
