"""How long a message takes: at a rate, one at a time, until a consumer has it; and small requests alone."""

from dataclasses import dataclass, field

from benchmarks.compare import topics
from benchmarks.compare.brokers import Target
from benchmarks.compare.case import Metrics, Plain, Tools, cpu_of, drop, fresh, per, topic
from riverlog.records.compression import Codec

AT_ONCE = {"linger.ms": "0", "acks": "1"}
MESSAGE_BYTES = 100
SYNCHRONOUS = 4_000
PACED_S = 2.0
REQUESTS_S = 1.0


@dataclass(frozen=True, slots=True)
class Paced(Plain):
    rate: int
    limit: str | None = None

    @property
    def name(self) -> str:
        return f"latency-{self.rate}"

    @property
    def words(self) -> str:
        return f"produce latency at {self.rate:,} msg/s"

    @property
    def seconds(self) -> float:
        return PACED_S + 0.8

    def measure(self, target: Target, tools: Tools) -> Metrics:
        with topic(target, "paced", 4) as name, cpu_of(target) as spent:
            done = tools.driver.run(
                "paced",
                AT_ONCE,
                brokers=target.bootstrap,
                topic=name,
                partitions=4,
                size=MESSAGE_BYTES,
                rate=self.rate,
                seconds=PACED_S * max(0.25, tools.scale),
            )
        return _percentiles(done) | per(spent, done["messages"], "broker_cpu_s_per_million", 1e6)


@dataclass(frozen=True, slots=True)
class Synchronous(Plain):
    name: str = "latency-sync"
    words: str = "synchronous produce, one message at a time"
    seconds: float = 2.2
    limit: str | None = None

    def measure(self, target: Target, tools: Tools) -> Metrics:
        count = tools.amount(SYNCHRONOUS)
        with topic(target, "sync", 1) as name, cpu_of(target) as spent:
            done = tools.driver.run(
                "sync", AT_ONCE, brokers=target.bootstrap, topic=name, size=MESSAGE_BYTES, count=count
            )
        return _percentiles(done) | per(spent, count, "broker_cpu_us", 1e6)


@dataclass(frozen=True, slots=True)
class EndToEnd(Plain):
    rate: int = 1_000
    limit: str | None = None

    @property
    def name(self) -> str:
        return f"end-to-end-{self.rate}"

    @property
    def words(self) -> str:
        return f"end to end at {self.rate:,} msg/s"

    @property
    def seconds(self) -> float:
        return PACED_S + 1.0

    def measure(self, target: Target, tools: Tools) -> Metrics:
        with topic(target, "through", 1) as name:
            done = tools.driver.run(
                "end-to-end",
                AT_ONCE,
                brokers=target.bootstrap,
                topic=name,
                size=MESSAGE_BYTES,
                rate=self.rate,
                seconds=PACED_S * max(0.25, tools.scale),
            )
        return _percentiles(done)


@dataclass(frozen=True, slots=True)
class SmallRequests:
    """One-record produce requests, one unanswered on each connection, over plain sockets."""

    connections: int
    limit: str | None = "echo_requests_s"
    _held: dict[str, str] = field(default_factory=dict, compare=False)

    @property
    def name(self) -> str:
        return f"requests-c{self.connections}"

    @property
    def words(self) -> str:
        return f"one-record requests, {self.connections:,} connection{'' if self.connections == 1 else 's'}"

    @property
    def seconds(self) -> float:
        return REQUESTS_S + 0.2 + self.connections / 2_000

    def prepare(self, target: Target, tools: Tools) -> None:
        self._held[target.name] = fresh("small")
        topics.create(target.address, self._held[target.name], 1)

    def measure(self, target: Target, tools: Tools) -> Metrics:
        record = topics.batch(1, MESSAGE_BYTES, Codec.NONE)
        frame = topics.produce_frame(self._held[target.name], [0], record)
        with topics.client(target.address) as connection:
            topics.send_until_taken(connection, frame)
        path = tools.directory / "frame"
        path.write_bytes(frame)
        with cpu_of(target) as spent:
            done = tools.driver.run(
                "requests",
                {},
                brokers=target.bootstrap,
                frame=path,
                connections=self.connections,
                seconds=REQUESTS_S * max(0.3, tools.scale),
            )
        metrics = {"requests_s": done["requests"] / done["seconds"]} | _percentiles(done)
        return (
            metrics
            | per(spent, done["requests"] + self.connections, "broker_cpu_us", 1e6)
            | per(spent, done["requests"] + self.connections, "broker_cpu_s_per_million", 1e6)
        )

    def clean_up(self, target: Target, tools: Tools) -> None:
        drop(target, self._held.pop(target.name))


def _percentiles(done: dict[str, float]) -> Metrics:
    return {name: done[name] for name in ("p50_ms", "p99_ms", "p999_ms")}
