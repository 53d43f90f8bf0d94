"""A cluster seen from outside: who leads, who is in sync, and whether every partition takes a record.

Questions go to a broker that answers; one that is away is passed over.
"""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from benchmarks import load
from benchmarks.asking import ask, receive
from benchmarks.compare import topics
from benchmarks.compare.case import fresh
from benchmarks.compare.failing import CompareError
from benchmarks.compare.replicated.clusters import COUNT, Cluster
from riverlog.model.errors import ErrorCode
from riverlog.records.compression import Codec
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

PARTITIONS: Final = 12
WAIT_S: Final = 120.0
_READY_S: Final = 300.0  # A busy machine takes minutes to start three JVMs.
_LOOK_S: Final = 0.01
_ANSWER_S: Final = 5.0
_METADATA: Final = 9
_PRODUCE: Final = 9


class NeverSoError(CompareError):
    """What a case waits for did not come about; the message says what."""


class Seen(NamedTuple):
    """One partition, as a broker describes it."""

    number: int
    leader: int
    isr: int


def look(cluster: Cluster, names: Sequence[str], without: Collection[int] = ()) -> list[Seen] | None:
    """Every partition of the topics; None while nobody answers, or not for all topics."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=False
    )
    for number in cluster.ports:
        if number in without:
            continue
        try:
            with load.connect(cluster.address_of(number)) as connection:
                connection.settimeout(_ANSWER_S)
                reply = ask(connection, ApiKey.METADATA, _METADATA, request)
        except OSError:
            continue
        if any(topic.error_code for topic in reply.topics):
            return None
        return [
            Seen(each.partition_index, each.leader_id, len(each.isr_nodes))
            for topic in reply.topics
            for each in topic.partitions
        ]
    return None


def wait_for(
    words: str, is_so: Callable[[], bool], *, every_s: float = _LOOK_S, wait_s: float = WAIT_S
) -> float:
    """How many seconds it took."""
    started_s = time.perf_counter()
    while not is_so():
        if time.perf_counter() - started_s > wait_s:
            raise NeverSoError(f"{words}: not after {wait_s:g} s")
        time.sleep(every_s)
    return time.perf_counter() - started_s


def wait_in_sync(cluster: Cluster, names: Sequence[str]) -> float:
    """Until every replica of the topics is in sync."""

    def is_so() -> bool:
        seen = look(cluster, names)
        return seen is not None and all(each.isr == COUNT and each.leader >= 0 for each in seen)

    return wait_for("every replica in sync", is_so)


def wait_until_ready(cluster: Cluster) -> None:
    """Until a topic of three replicas can be made, and takes a record in every partition."""
    name = fresh("first")

    def is_made() -> bool:
        try:
            topics.create(cluster.address, name, PARTITIONS, replicas=COUNT)
        except (OSError, topics.BrokerRefusedError):
            return look(cluster, [name]) is not None
        return True

    try:
        wait_for(f"three brokers of {cluster.name} ready", is_made, wait_s=_READY_S)
    except NeverSoError as error:
        raise NeverSoError(f"{error}; {cluster.last_words}") from None
    wait_in_sync(cluster, [name])
    Writes(cluster, name).take()


@contextmanager
def replicated(cluster: Cluster, prefix: str, partitions: int = PARTITIONS) -> Iterator[str]:
    """A topic of three replicas that is gone afterwards, its files as well."""
    name = fresh(prefix)
    topics.create(cluster.address, name, partitions, replicas=COUNT)
    wait_in_sync(cluster, [name])
    try:
        yield name
    finally:
        topics.delete(cluster.address, name)
        wait_for(f"files of {name} gone", lambda: not cluster.files_of(name))


class Writes:
    """One record with acks=all to every partition, at whoever leads it, until all have taken it."""

    def __init__(self, cluster: Cluster, name: str, partitions: int = PARTITIONS) -> None:
        self._cluster, self._name = cluster, name
        record = topics.batch(1, 100, Codec.NONE)
        self._frames = {
            each: topics.produce_frame(name, [each], record, acks=-1) for each in range(partitions)
        }

    def take(self, without: Collection[int] = ()) -> None:
        """Returns when every partition has acknowledged one; `without` are brokers not to be asked."""
        left = set(self._frames)
        deadline_s = time.perf_counter() + WAIT_S
        while left:
            if time.perf_counter() > deadline_s:
                raise NeverSoError(f"{len(left)} partitions take no record with acks=all")
            seen = look(self._cluster, [self._name], without) or []
            led = {each.number: each.leader for each in seen if each.number in left and each.leader > 0}
            left -= self._send({number: leader for number, leader in led.items() if leader not in without})
            if left:
                time.sleep(_LOOK_S)

    def _send(self, led: dict[int, int]) -> set[int]:
        """Those that were acknowledged. All of one broker are sent before the first is waited for."""
        taken: set[int] = set()
        for leader in sorted(set(led.values())):
            numbers = [number for number, each in led.items() if each == leader]
            try:
                with load.connect(self._cluster.address_of(leader)) as connection:
                    connection.settimeout(WAIT_S)
                    for number in numbers:
                        connection.sendall(self._frames[number])
                    for number in numbers:
                        reply = receive(connection, ApiKey.PRODUCE, _PRODUCE)
                        [answer] = reply.responses[0].partition_responses
                        if answer.error_code == ErrorCode.NONE:
                            taken.add(number)
            except OSError:
                continue
        return taken
