"""Streams sample orders through an embedded broker with a stock Kafka client, and proves that all arrived.

A producer thread sends orders of several regions (keys, headers, lz4, idempotent), some of them twice and
late, as real sources do; a consumer thread reads all partitions at the same time. At the end each count and
checksum of the two sides must be equal, or the exit code is 1. `make demo` runs it.

    python examples/orders_demo.py --orders 200000 --rate 0
"""

import argparse
import json
import os
import random
import sys
import threading
import time
import zlib
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from riverlog.records.murmur2 import partition_for_key
from riverlog.testing import Broker

REGIONS = {"eu-central": 0.34, "us-east": 0.28, "ap-south": 0.22, "sa-east": 0.11, "af-south": 0.05}
PRODUCTS = ("anchor", "buoy", "compass", "dinghy", "eel trap", "ferry pass", "gangway")
CUSTOMERS_PER_REGION = 2_000
DUPLICATE_SHARE = 0.02
DUPLICATE_DELAY_ORDERS = 400
DEADLINE_S = 120.0


@dataclass(frozen=True, slots=True)
class Order:
    number: int
    region: str
    customer: str
    is_duplicate: bool
    document: bytes


def orders(count: int, seed: int) -> Iterator[Order]:
    """The sample stream; a few orders come a second time, some hundred orders later."""
    dice = random.Random(seed)
    regions, weights = list(REGIONS), list(REGIONS.values())
    late: deque[Order] = deque()
    for number in range(count):
        region = dice.choices(regions, weights)[0]
        customer = f"{region}/{dice.randrange(CUSTOMERS_PER_REGION):04}"
        items = [{"product": dice.choice(PRODUCTS), "cents": dice.randrange(99, 50_000)} for _ in range(3)]
        document = json.dumps({"order": number, "customer": customer, "items": items}).encode()
        yield Order(number, region, customer, False, document)
        if dice.random() < DUPLICATE_SHARE:
            late.append(Order(number, region, customer, True, document))
        while late and late[0].number + DUPLICATE_DELAY_ORDERS <= number:
            yield late.popleft()
    yield from late


@dataclass(slots=True)
class Tally:
    """What went past one point. The sum of checksums does not depend on the order of arrival."""

    records: int = 0
    size: int = 0
    checksum: int = 0

    def add(self, document: bytes) -> None:
        self.records += 1
        self.size += len(document)
        self.checksum += zlib.crc32(document)


class Passage:
    """Tallies by region and by partition at one point of the way."""

    def __init__(self) -> None:
        self.total = Tally()
        self.parts: defaultdict[str, Tally] = defaultdict(Tally)

    def add(self, region: str, partition: int, document: bytes) -> None:
        self.total.add(document)
        self.parts[region].add(document)
        self.parts[f"partition {partition}"].add(document)


@dataclass(slots=True)
class Stream:
    """One run: what it is to do, what has happened so far, and what went wrong."""

    bootstrap: str
    topic: str
    partitions: int
    produced: Passage = field(default_factory=Passage)
    acknowledged: Passage = field(default_factory=Passage)
    consumed: Passage = field(default_factory=Passage)
    numbers: set[int] = field(default_factory=set)
    sent_twice: int = 0
    arrived_twice: int = 0
    latencies_ms: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    reader_waits: threading.Event = field(default_factory=threading.Event)
    stop: threading.Event = field(default_factory=threading.Event)


def produce(stream: Stream, source: Iterator[Order], rate: float) -> None:
    settings = {"bootstrap.servers": stream.bootstrap, "log.connection.close": False}
    # murmur2 is where the Java client puts a key, and with it every other Kafka client but librdkafka.
    partitioning = {"partitioner": "murmur2_random", "linger.ms": 5}
    producer = Producer({**settings, **partitioning, "compression.type": "lz4", "enable.idempotence": True})
    started = time.monotonic()
    for position, order in enumerate(source):
        while rate and position / rate > time.monotonic() - started:
            producer.poll(0.001)
        while not send(producer, stream, order):
            producer.poll(0.05)
        partition = partition_for_key(order.customer.encode(), stream.partitions)
        stream.produced.add(order.region, partition, order.document)
        stream.sent_twice += order.is_duplicate
        if position == 0:
            # A producer id takes the client up to a second to ask for; the pace begins when it has one.
            producer.flush(30)
            started = time.monotonic()
        producer.poll(0)
    if left := producer.flush(30):
        stream.wrong.append(f"{left} orders were neither acknowledged nor refused")


def send(producer: Producer, stream: Stream, order: Order) -> bool:
    """Hand one order to the client; False when its queue is full."""

    def settled(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            stream.wrong.append(f"order {order.number}: {error.str()}")
        else:
            stream.acknowledged.add(order.region, message.partition() or 0, order.document)

    headers: dict[str, str | bytes | None] = {"region": order.region, "sent-ns": str(time.monotonic_ns())}
    try:
        producer.produce(stream.topic, order.document, order.customer, headers=headers, on_delivery=settled)
    except BufferError:
        return False
    return True


def consume(stream: Stream) -> None:
    settings = {"bootstrap.servers": stream.bootstrap, "group.id": "orders-demo"}
    consumer = Consumer({**settings, "enable.auto.commit": False, "enable.partition.eof": True})
    consumer.assign([TopicPartition(stream.topic, partition, 0) for partition in range(stream.partitions)])
    waiting: set[int | None] = set()
    next_offsets: defaultdict[int, int] = defaultdict(int)
    try:
        while not stream.stop.is_set():
            message = consumer.poll(0.1)
            error = message.error() if message is not None else None
            if message is None:
                continue
            if error is None:
                take(stream, message, next_offsets)
            elif error.name() != "_PARTITION_EOF":
                raise KafkaException(error)
            else:
                waiting.add(message.partition())
                if len(waiting) == stream.partitions:
                    stream.reader_waits.set()
    finally:
        consumer.close()


def take(stream: Stream, message: Message, next_offsets: defaultdict[int, int]) -> None:
    now_ns = time.monotonic_ns()
    partition, offset, document = message.partition() or 0, message.offset() or 0, message.value() or b""
    headers = dict(message.headers() or [])
    order = json.loads(document)
    if offset != next_offsets[partition]:
        stream.wrong.append(f"partition {partition}: offset {offset}, not {next_offsets[partition]}")
    if (message.key() or b"").decode() != order["customer"]:
        stream.wrong.append(f"order {order['order']} came under the key {message.key()!r}")
    next_offsets[partition] = offset + 1
    stream.arrived_twice += order["order"] in stream.numbers
    stream.numbers.add(order["order"])
    stream.latencies_ms.append((now_ns - int(headers["sent-ns"] or 0)) / 1e6)
    region = headers["region"]
    assert isinstance(region, bytes)
    stream.consumed.add(region.decode(), partition, document)


def run(console: Console, stream: Stream, options: argparse.Namespace) -> float:
    """Let both threads work until everything has arrived; the seconds that it took."""
    total = sum(1 for _ in orders(options.orders, options.seed))
    source = orders(options.orders, options.seed)
    reader = threading.Thread(target=guarded(stream, lambda: consume(stream)))
    writer = threading.Thread(target=guarded(stream, lambda: produce(stream, source, options.rate)))
    reader.start()
    stream.reader_waits.wait(DEADLINE_S)
    started = time.monotonic()
    writer.start()
    with live_progress(console, total) as draw:
        while stream.consumed.total.records < total and not stream.wrong:
            draw(stream)
            if stream.stop.wait(0.1) or time.monotonic() - started > DEADLINE_S:
                break
        draw(stream)
    elapsed_s = time.monotonic() - started
    writer.join()
    stream.stop.set()
    reader.join()
    return elapsed_s


def guarded(stream: Stream, work: Callable[[], None]) -> Callable[[], None]:
    def guarded_work() -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - the main thread reports it and fails
            stream.wrong.append(f"{type(error).__name__}: {error}")
            stream.reader_waits.set()
            stream.stop.set()

    return guarded_work


@contextmanager
def live_progress(console: Console, total: int) -> Iterator[Callable[[Stream], None]]:
    """Bars on a terminal; elsewhere a line every two seconds."""
    points = ("produced", "acknowledged", "consumed")
    if console.is_terminal:
        columns = (
            TextColumn("{task.description:>12}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=console) as bars:
            tasks = {point: bars.add_task(point, total=total) for point in points}

            def draw_bars(stream: Stream) -> None:
                for point, task in tasks.items():
                    bars.update(task, completed=getattr(stream, point).total.records)

            yield draw_bars
        return
    last = time.monotonic()

    def print_line(stream: Stream) -> None:
        nonlocal last
        if time.monotonic() - last >= 2:
            last = time.monotonic()
            counts = (f"{point} {getattr(stream, point).total.records:,}" for point in points)
            console.print(f"  {', '.join(counts)}")

    yield print_line


def differences(stream: Stream, wanted: int) -> list[str]:
    """Everything that is off; empty when all sides agree."""
    found = stream.wrong[:10]
    sides = {"acknowledged": stream.acknowledged, "consumed": stream.consumed}
    for side, passage in sides.items():
        for part in sorted({*stream.produced.parts, *passage.parts}):
            if passage.parts[part] != stream.produced.parts[part]:
                found.append(f"{part}: produced {stream.produced.parts[part]}, {side} {passage.parts[part]}")
    if len(stream.numbers) != wanted:
        found.append(f"{wanted} different orders were made, {len(stream.numbers)} arrived")
    if stream.arrived_twice != stream.sent_twice:
        found.append(f"{stream.sent_twice} orders were sent twice, {stream.arrived_twice} arrived twice")
    return found


def show(console: Console, stream: Stream, elapsed_s: float) -> None:
    table = Table(title="What went through", title_justify="left")
    for heading in ("", "produced", "acknowledged", "consumed", "bytes"):
        table.add_column(heading, justify="right" if heading else "left")

    def add(part: str) -> None:
        passages = (stream.produced, stream.acknowledged, stream.consumed)
        counts = (f"{passage.parts[part].records:,}" for passage in passages)
        table.add_row(part, *counts, f"{stream.consumed.parts[part].size:,}")

    for region in REGIONS:
        add(region)
    table.add_section()
    for partition in range(stream.partitions):
        add(f"partition {partition}")
    console.print(table)
    total, latencies = stream.consumed.total, sorted(stream.latencies_ms) or [0.0]
    console.print(
        f"{total.records:,} records, {stream.arrived_twice:,} of them late duplicates, in {elapsed_s:.1f} s:"
        f" {total.records / elapsed_s:,.0f} records/s, {total.size / 1e6 / elapsed_s:.2f} MB/s"
    )
    p50, p99 = latencies[len(latencies) // 2], latencies[len(latencies) * 99 // 100]
    console.print(f"from produce() to the consumer's poll(): p50 {p50:.1f} ms, p99 {p99:.1f} ms")


@contextmanager
def serving(bootstrap_server: str | None) -> Iterator[str]:
    """An embedded broker in a temporary directory, unless a running one was named."""
    if bootstrap_server:
        yield bootstrap_server
        return
    with Broker() as broker:
        yield broker.bootstrap_servers


def main() -> int:
    parser = argparse.ArgumentParser(description="Stream sample orders through an embedded Riverlog broker.")
    parser.add_argument("--orders", type=int, default=50_000)
    parser.add_argument("--partitions", type=int, default=6)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--rate", type=float, default=10_000, help="orders a second; 0: as fast as possible")
    parser.add_argument("--bootstrap-server", help="use this broker instead of an embedded one")
    options = parser.parse_args()
    console = Console(soft_wrap=True, highlight=False)
    started = time.monotonic()
    with serving(options.bootstrap_server) as bootstrap:
        console.print(f"broker on {bootstrap}, ready after {time.monotonic() - started:.2f} s")
        stream = Stream(bootstrap, f"orders-{os.getpid()}", options.partitions)
        with AdminClient({"bootstrap.servers": bootstrap, "log.connection.close": False}) as admin:
            admin.create_topics([NewTopic(stream.topic, stream.partitions)])[stream.topic].result()
            console.print(f"streaming {options.orders:,} orders (seed {options.seed}) into {stream.topic}")
            elapsed_s = run(console, stream, options)
            admin.delete_topics([stream.topic])[stream.topic].result()
    show(console, stream, elapsed_s)
    wrong = differences(stream, options.orders)
    for line in wrong:
        console.print(f"wrong: {line}", style="red")
    if not wrong:
        console.print("every order was produced, acknowledged and consumed: counts and checksums are equal")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
