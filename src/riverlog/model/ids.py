"""Names and numbers that identify things, as types of their own so that they cannot be mixed up."""

from typing import Final, NamedTuple, NewType
from uuid import UUID

NodeId = NewType("NodeId", int)
LeaderEpoch = NewType("LeaderEpoch", int)
"""An offset beside it is an `int`: it is computed at every step, and a type of its own would have to be put
on again by a call each time. One of the two that has one is enough for a checker to find them exchanged."""
BrokerEpoch = NewType("BrokerEpoch", int)
"""Of one registration of a broker: it rises with each."""
TopicId = NewType("TopicId", UUID)
"""Of a topic that there is or was, as the metadata and the disk have it. What a request names is a `UUID`
until it is looked up, and so is the id of anything else."""
ProducerId = NewType("ProducerId", int)
PRODUCER_IDS_PER_MS: Final = 1000
"""More than are ever given out: those that begin at the time in milliseconds, times this, are above all that
were given before."""

_BROKER: Final = "broker-"


def client_id_of_broker(node_id: NodeId) -> str:
    """What a broker calls itself when it asks another one."""
    return f"{_BROKER}{node_id}"


def is_broker(client_id: str | None) -> bool:
    """Whether somebody calls itself as a broker does. A broker that others do not see any more counts."""
    return client_id is not None and client_id.startswith(_BROKER) and client_id[len(_BROKER) :].isdecimal()


class TopicPartition(NamedTuple):
    """One partition of one topic by name; `str()` gives the name of its directory on disk."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class ProducerIdAndEpoch(NamedTuple):
    """A producer by the numbers that brokers know it by; a higher epoch of the same id fences it."""

    producer_id: int
    producer_epoch: int
