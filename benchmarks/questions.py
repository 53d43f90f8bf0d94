"""100,000 partitions that every tool asks about: what a question costs, and how long others wait meanwhile.

A bystander produces synchronously, one record after the other, while the questions come; on a machine that
has nothing else to do, its longest wait is the longest turn of the broker's event loop. On a busy one the
turns are measured in processor time (`loop_turns`). It is also stopped with SIGTERM, killed and started.

`python -m benchmarks.questions 20000` takes another number of partitions than 100,000; with `turns` behind it
only turns are measured. `python -m benchmarks.questions 10000 kafka` asks an Apache Kafka the same that it
starts for it, and Riverlog beside it, as far as that one bears so many partitions; `kafka HOST:PORT PID` asks
one that runs there as that process.
"""

import resource
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil

from benchmarks import load
from benchmarks.asking import ask
from benchmarks.compare.brokers import Flavour, Riverlog, kafkas, launch
from benchmarks.compare.lifecycle import first_ack
from benchmarks.compare.topics import send_until_taken
from benchmarks.figures import Aim, Figure, show
from benchmarks.loop_turns import TurnMeter
from benchmarks.servers import Server, cpu_s, riverlog
from riverlog.node.processes.event_loop import collect_rarely
from riverlog.records.builder import build_batch
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from riverlog.wire.messages.describe_groups import DescribeGroupsRequest
from riverlog.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from riverlog.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest
from riverlog.wire.messages.list_groups import ListGroupsRequest
from riverlog.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from riverlog.wire.messages.metadata import MetadataRequest
from riverlog.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from riverlog.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

PARTITIONS = 100_000
TOPIC_PARTITIONS = 1_000
WRITTEN = 1_000
PRODUCED_TOPICS = 2
GROUPS = 10_000
SETTINGS = {"log_retention_ms": "-1"}  # What is written has an old timestamp.
TIMES = 5
_LATEST = -1
_DESCRIPTORS = 1_000_000
"""Apache Kafka holds several for each partition, and maps its indexes, of which Linux allows 65,530."""
_TOPIC_RESOURCE = 2


class Question(NamedTuple):
    name: str
    frames: list[bytes]
    """Asked one after the other."""


def run(partitions: int = PARTITIONS) -> list[Figure]:
    with tempfile.TemporaryDirectory() as directory:
        with riverlog(Path(directory), **SETTINGS) as broker:
            _make_topics(broker, partitions)
            before_mb = broker.rss_mb
            first_s = _cpu_of(broker, _offsets(partitions).frames)
            more_mb = broker.rss_mb - before_mb
            figures = [
                Figure(f"ListOffsets of {partitions:,}, broker CPU", first_s, "CPU-s", aim=Aim(3.0)),
                Figure("memory for it", more_mb, "MB", aim=Aim(40.0)),
                *_ends("nothing written", Path(directory), broker, partitions),
            ]
        with riverlog(Path(directory), **SETTINGS) as broker:
            _write_some(broker, partitions)
            first_s = _cpu_of(broker, _offsets(partitions).frames)
            figures.append(Figure(f"ListOffsets, {WRITTEN:,} written", first_s, "CPU-s", aim=Aim(3.0)))
            figures += _ends(f"{WRITTEN:,} written", Path(directory), broker, partitions)
        with riverlog(Path(directory), **SETTINGS) as broker:
            _make_groups(broker)
            for question in _questions(partitions):
                figures += _beside_a_producer(broker, question)
            figures.append(Figure("resident memory after all questions", broker.rss_mb, "MB"))
    return figures


def _ends(when: str, directory: Path, broker: Server, partitions: int) -> list[Figure]:
    """SIGTERM, after all partitions were asked for; and a start after kill -9, asked for again before it."""
    started, before_s, children_s = time.perf_counter(), broker.cpu_s, _children_s()
    broker.stop(signal.SIGTERM)
    stopped_s, stop_cpu_s = time.perf_counter() - started, _children_s() - children_s - before_s
    with riverlog(directory, **SETTINGS) as again:
        _cpu_of(again, _offsets(partitions).frames)
        again.stop(signal.SIGKILL)
    with riverlog(directory, **SETTINGS) as again:
        ready_s, ready_cpu_s = again.ready_after_s, again.cpu_s
    return [
        Figure(f"SIGTERM after it, {when}", stopped_s, "s", aim=Aim(2.0)),
        Figure(f"SIGTERM after it, {when}: CPU", stop_cpu_s, "CPU-s"),
        Figure(f"start after kill -9, {when}", ready_s, "s", aim=Aim(3.0)),
        Figure(f"start after kill -9, {when}: CPU", ready_cpu_s, "CPU-s"),
    ]


def _children_s() -> float:
    """Processor time of all programs that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def longest_turns(partitions: int) -> list[Figure]:
    """No answer may hold the loop for more than 5 ms."""
    settings = {name.replace("_", "."): value for name, value in SETTINGS.items()}
    with tempfile.TemporaryDirectory() as directory, Broker(settings, data_dir=directory) as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        served = Address((host, int(port)))
        _make_topics(served, partitions)
        _write_some(served, partitions)
        _make_groups(served)
        meter = TurnMeter(broker)
        collect_rarely()  # As `riverlog serve` does.
        produced = Question(f"Produce to {PRODUCED_TOPICS * TOPIC_PARTITIONS:,}", [_produce(partitions)] * 2)
        return [
            Figure(
                f"{question.name}: longest turn of the loop",
                meter.longest_ms(lambda frames=question.frames: _ask_all(served, frames)),  # type: ignore[misc]
                "CPU-ms",
                aim=Aim(5.0),
            )
            for question in (*_questions(partitions), produced)
        ]


class Address(NamedTuple):
    address: tuple[str, int]
    pid: int | None = None


Served = Server | Address


def _ask_all(served: Served, frames: list[bytes]) -> None:
    with load.connect(served.address) as client:
        for frame in frames:
            load.exchange(client, frame, 1)


def _make_topics(broker: Served, partitions: int) -> None:
    with load.connect(broker.address) as client:
        for name in _topics(partitions):
            load.call(client, load.Frames(name).create(partitions=TOPIC_PARTITIONS))


def _write_some(broker: Served, partitions: int) -> None:
    topics = _topics(partitions)
    with load.connect(broker.address) as client:
        for number in range(WRITTEN):
            topic, index = topics[number % len(topics)], number // len(topics)
            send_until_taken(client, load.Frames(topic).produce(1, 100, partition=index))


def _make_groups(broker: Served) -> None:
    with load.connect(broker.address) as client:
        load.call(client, load.Frames("bystander").create(partitions=1))
        ask(client, ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest(key="any"))
        topic = OffsetCommitRequestTopic(
            name="topic-0", partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=0)]
        )
        for number in range(GROUPS):
            request = OffsetCommitRequest(group_id=f"group-{number}", topics=[topic])
            ask(client, ApiKey.OFFSET_COMMIT, 7, request)


def _cpu_of(broker: Server, frames: list[bytes]) -> float:
    before = broker.cpu_s
    _ask_all(broker, frames)
    return broker.cpu_s - before


def beside_kafka(partitions: int) -> None:
    """Both on this machine, one after the other."""
    kafka, *_ = kafkas()
    with tempfile.TemporaryDirectory() as directory:
        for flavour in (Riverlog(), kafka):
            figures = ask_fresh(flavour, Path(directory) / flavour.name, partitions)
            show(figures, title=f"{flavour.name}, {partitions:,} partitions")


def ask_fresh(flavour: Flavour, directory: Path, partitions: int) -> list[Figure]:
    load.allow_descriptors(_DESCRIPTORS)
    target = launch(flavour, directory)
    try:
        assert target.process is not None
        first_ack(target)
        started_s = time.perf_counter()
        address = Address(target.address, target.process.pid)
        figures = asked(address, partitions)
        memory_mb = psutil.Process(target.process.pid).memory_info().rss / 1e6
        took_s = time.perf_counter() - started_s
    finally:
        stopping_s = time.perf_counter()
        target.stop()
    return [
        *figures,
        Figure("resident memory after all questions", memory_mb, "MB"),
        Figure("all of it, topics and groups made for it included", took_s, "s"),
        Figure("SIGTERM after it", time.perf_counter() - stopping_s, "s"),
    ]


def asked(address: Address, partitions: int) -> list[Figure]:
    """Of a broker that has no partitions yet."""
    _make_topics(address, partitions)
    _write_some(address, partitions)
    _make_groups(address)
    return [figure for question in _questions(partitions) for figure in _beside_a_producer(address, question)]


def _beside_a_producer(broker: Served, question: Question) -> list[Figure]:
    with load.connect(broker.address) as client, _bystander(broker) as waits_s:
        for _ in range(TIMES):
            for frame in question.frames:
                load.exchange(client, frame, 1)
        before, started = _cpu_s(broker), time.perf_counter()
        for frame in question.frames:
            load.exchange(client, frame, 1)
        took_s, used_s = time.perf_counter() - started, _cpu_s(broker) - before
    waits_ms = sorted(each * 1000 for each in waits_s)
    p99_ms = waits_ms[len(waits_ms) * 99 // 100]
    return [
        Figure(f"{question.name}: broker CPU", used_s, "CPU-s"),
        Figure(f"{question.name}: answered after", took_s, "s"),
        Figure(f"{question.name}: a bystander's p99 of {len(waits_ms):,}", p99_ms, "ms", aim=Aim(5.0)),
        Figure(f"{question.name}: a bystander's longest wait", waits_ms[-1], "ms", aim=Aim(25.0)),
    ]


def _cpu_s(broker: Served) -> float:
    if isinstance(broker, Server):
        return broker.cpu_s
    return 0.0 if broker.pid is None else cpu_s(broker.pid)


@contextmanager
def _bystander(broker: Served) -> Iterator[list[float]]:
    """Another client, whose acknowledged writes are timed one by one."""
    waits_s: list[float] = []
    is_over = threading.Event()
    with load.connect(broker.address) as client:
        watching = threading.Thread(target=_produce_until, args=(client, is_over.is_set, waits_s))
        watching.start()
        try:
            yield waits_s
        finally:
            is_over.set()
            watching.join()


def _produce_until(client: socket.socket, is_over: Callable[[], bool], waits_s: list[float]) -> None:
    frame = load.Frames("bystander").produce(1, 100)
    load.call(client, frame)
    while not is_over():
        started = time.perf_counter()
        load.call(client, frame)
        waits_s.append(time.perf_counter() - started)
        time.sleep(0.001)


def _questions(partitions: int) -> Iterator[Question]:
    yield Question("nothing but the producer", [_metadata(topics=[])] * 500)
    yield _offsets(partitions)
    topics = _topics(partitions)
    yield Question(
        "ListOffsets by topic", [_list_offsets([_of_topic(name, range(TOPIC_PARTITIONS))]) for name in topics]
    )
    absent = [_of_topic("absent", range(partitions))]
    yield Question(f"ListOffsets of {partitions:,} that do not exist", [_list_offsets(absent)])
    yield Question("Fetch at the end of everything", [_fetch(partitions, wait_ms=0)])
    yield Question("Fetch at the end of everything that waits 0.1 s", [_fetch(partitions, wait_ms=100)])
    yield Question("Metadata of everything", [_metadata(topics=None)])
    everywhere = DescribeLogDirsRequest(topics=None)
    yield Question("DescribeLogDirs of everything", [load.frame(ApiKey.DESCRIBE_LOG_DIRS, 4, everywhere)])
    page = DescribeTopicPartitionsRequest(topics=[], response_partition_limit=2000)
    yield Question(
        "DescribeTopicPartitions, ten pages",
        [load.frame(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, page)] * 10,
    )
    resources = [
        DescribeConfigsResource(resource_type=_TOPIC_RESOURCE, resource_name=name, configuration_keys=None)
        for name in topics
    ]
    configs = DescribeConfigsRequest(resources=resources, include_synonyms=True)
    yield Question(
        f"DescribeConfigs of {len(topics)} topics", [load.frame(ApiKey.DESCRIBE_CONFIGS, 4, configs)]
    )
    yield Question("ListGroups", [load.frame(ApiKey.LIST_GROUPS, 4, ListGroupsRequest())])
    batches = [[f"group-{number}" for number in range(at, at + 1000)] for at in range(0, GROUPS, 1000)]
    described = [DescribeGroupsRequest(groups=names) for names in batches]
    yield Question(
        "DescribeGroups by 1,000", [load.frame(ApiKey.DESCRIBE_GROUPS, 5, each) for each in described]
    )
    fetched = [
        OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=name, topics=None) for name in names])
        for names in batches
    ]
    yield Question(
        "OffsetFetch by 1,000 groups", [load.frame(ApiKey.OFFSET_FETCH, 8, each) for each in fetched]
    )


def _topics(partitions: int) -> list[str]:
    return [f"topic-{number}" for number in range(partitions // TOPIC_PARTITIONS)]


def _offsets(partitions: int) -> Question:
    topics = [_of_topic(name, range(TOPIC_PARTITIONS)) for name in _topics(partitions)]
    return Question(f"ListOffsets of {partitions:,}", [_list_offsets(topics)])


def _of_topic(name: str, indexes: range) -> ListOffsetsTopic:
    wanted = [ListOffsetsPartition(partition_index=index, timestamp=_LATEST) for index in indexes]
    return ListOffsetsTopic(name=name, partitions=wanted)


def _list_offsets(topics: list[ListOffsetsTopic]) -> bytes:
    return load.frame(ApiKey.LIST_OFFSETS, 7, ListOffsetsRequest(topics=topics))


def _fetch(partitions: int, *, wait_ms: int) -> bytes:
    """One record is in each partition that was written to."""
    names = _topics(partitions)
    written = WRITTEN // len(names)
    topics = [
        FetchTopic(
            topic=name,
            partitions=[
                FetchPartition(
                    partition=index, fetch_offset=int(index < written), partition_max_bytes=1 << 20
                )
                for index in range(TOPIC_PARTITIONS)
            ],
        )
        for name in names
    ]
    request = FetchRequest(
        max_wait_ms=wait_ms, min_bytes=1, max_bytes=1 << 26, session_epoch=-1, topics=topics
    )
    return load.frame(ApiKey.FETCH, 12, request)


def _produce(partitions: int) -> bytes:
    """A record into each of the last so many partitions."""
    topics = []
    for name in _topics(partitions)[-PRODUCED_TOPICS:]:
        data = [
            PartitionProduceData(index=index, records=build_batch([(1, None, b"x" * 100, ())]))
            for index in range(TOPIC_PARTITIONS)
        ]
        topics.append(TopicProduceData(name=name, partition_data=data))
    return load.frame(ApiKey.PRODUCE, 9, ProduceRequest(acks=-1, timeout_ms=600_000, topic_data=topics))


def _metadata(topics: list[object] | None) -> bytes:
    return load.frame(ApiKey.METADATA, 12, MetadataRequest(topics=topics))  # type: ignore[arg-type]


def main() -> None:
    partitions = int(sys.argv[1]) if len(sys.argv) > 1 else PARTITIONS
    match sys.argv[2:]:
        case ["turns"]:
            show(longest_turns(partitions))
        case ["kafka"]:
            beside_kafka(partitions)
        case ["kafka", address, pid]:
            host, _, port = address.rpartition(":")
            figures = asked(Address((host, int(port)), int(pid)), partitions)
            show(figures, title="Apache Kafka on this machine")
        case _:
            show(run(partitions))


if __name__ == "__main__":
    main()
