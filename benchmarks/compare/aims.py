"""The figures to reach, most as ratios to Apache Kafka in the same run: data, with a row for each."""

from dataclasses import dataclass

from benchmarks.compare.results import Result

OURS, THEIRS, TUNED = "riverlog", "kafka", "kafka-tuned"
SHARED = "riverlog-shared"  # Several brokers on one host, with their supervisor.


@dataclass(frozen=True, slots=True)
class Aim:
    words: str
    case: str
    metric: str
    at_least: float | None = None
    at_most: float | None = None
    unit: str | None = None
    """Where it is the figure itself that has a bound, and not its ratio."""
    target: str = OURS

    @property
    def text(self) -> str:
        unit = "x" if self.unit is None else f" {self.unit}"
        if self.at_least is not None:
            return f"at least {self.at_least:g}{unit}"
        return f"at most {self.at_most:g}{unit}"

    @property
    def command(self) -> str:
        return f"python -m benchmarks.compare --case {self.case}"

    def is_met_by(self, measured: float) -> bool:
        """By a ratio, or by a figure where the aim has a unit."""
        if self.at_least is not None:
            return measured >= self.at_least
        return self.at_most is not None and measured <= self.at_most


@dataclass(frozen=True, slots=True)
class Verdict:
    """An aim beside what was measured; no ratio means that one of the two could not be measured."""

    aim: Aim
    ratio: float | None
    ratio_tuned: float | None
    value: float | None = None

    @property
    def measured(self) -> float | None:
        """What the aim is about."""
        return self.ratio if self.aim.unit is None else self.value

    @property
    def is_met(self) -> bool | None:
        return None if self.measured is None else self.aim.is_met_by(self.measured)


def _by_size(words: str, case: str, metric: str, **bounds: tuple[float, float, float]) -> list[Aim]:
    return [
        Aim(
            words.format(size=label),
            case.format(size=size),
            metric,
            at_least=bounds["at_least"][number] if "at_least" in bounds else None,
            at_most=bounds["at_most"][number] if "at_most" in bounds else None,
        )
        for number, (size, label) in enumerate((("100B", "100 B"), ("1KB", "1 KB"), ("10KB", "10 KB")))
    ]


_PRODUCED, _CONSUMED = "produce-{size}-none-acks1-p4", "consume-{size}-none-p4-hot"
_COPIED = "replicated-produce-{size}"
_MOST, _LEAST, _LESS = (0.6,) * 3, (1.3,) * 3, (0.8,) * 3
AIMS: tuple[Aim, ...] = (
    *_by_size("produce throughput, {size}", _PRODUCED, "mb_s", at_least=_LEAST),
    *_by_size(
        "produce throughput, {size}, acks=all", "produce-{size}-none-acksall-p4", "mb_s", at_least=_LEAST
    ),
    *(
        Aim(
            f"produce throughput, 100 B, {words}two producers",
            f"produce-100B-none-acks{acks}-p4-by2",
            "mb_s",
            at_least=_LEAST[0],
        )
        for acks, words in (("1", ""), ("all", "acks=all, "))
    ),
    *_by_size("consume throughput, hot, {size}", _CONSUMED, "mb_s", at_least=(1.0, 1.2, 1.4)),
    *_by_size("broker CPU per GB produced, {size}", _PRODUCED, "broker_cpu_s_per_gb", at_most=_MOST),
    *_by_size("broker CPU per GB fetched, {size}", _CONSUMED, "broker_cpu_s_per_gb", at_most=_LESS),
    Aim("broker CPU per one-record request, synchronous", "latency-sync", "broker_cpu_us", at_most=0.5),
    Aim("produce latency p50, synchronous", "latency-sync", "p50_ms", at_most=0.8),
    Aim("produce latency p99, synchronous", "latency-sync", "p99_ms", at_most=0.8),
    Aim("end to end p50 at 1,000 msg/s", "end-to-end-1000", "p50_ms", at_most=0.7),
    Aim("end to end p99 at 1,000 msg/s", "end-to-end-1000", "p99_ms", at_most=0.7),
    Aim("start to first acknowledged message", "start", "start_s", at_most=0.12),
    Aim("resident memory, idle", "start", "rss_mb", at_most=0.2),
    Aim("resident memory, loaded", "memory-loaded", "rss_mb", at_most=0.15),
    *(
        aim
        for connections, label in ((1, "1 connection"), (64, "64 connections"), (1000, "1,000 connections"))
        for aim in (
            Aim(
                f"small requests per second, {label}", f"requests-c{connections}", "requests_s", at_least=1.2
            ),
            Aim(f"broker CPU of each, {label}", f"requests-c{connections}", "broker_cpu_us", at_most=0.6),
        )
    ),
    Aim(
        "small requests per second, 1,000 connections, two brokers on one host",
        "shared-requests-c1000",
        "requests_s",
        at_least=1.2,
    ),
    Aim("transactions per second", "transactions", "transactions_s", at_least=1.0),
    Aim("group join, 50 members, time", "group-join-50", "join_ms", at_most=1.0),
    Aim("group join, one consumer, time", "group-join-consumer", "join_ms", at_most=1.0),
    Aim("compaction per core", "compaction", "mb_per_cpu_s", at_least=1.0),
    *_by_size("three replicas, produce throughput, {size}", _COPIED, "mb_s", at_least=(1.1, 1.3, 1.3)),
    *_by_size("three replicas, broker CPU per GB, {size}", _COPIED, "broker_cpu_s_per_gb", at_most=_MOST),
    Aim("three replicas, produce latency p50, synchronous", "replicated-sync", "p50_ms", at_most=0.8),
    Aim("three replicas, memory of each broker", "replicated-produce-1KB", "rss_mb", at_most=0.15),
    Aim("three replicas, kill -9 of a broker", "replicated-failover", "missed_s", at_most=1.0),
    *(
        Aim(
            f"three replicas, kill -9 of a broker that is started again{words}",
            "replicated-kill-restart",
            "missed_s",
            at_most=1.5,
            unit="s",
            target=target,
        )
        for target, words in ((OURS, ""), (SHARED, ", one host"))
    ),
    *(
        Aim(f"rolling restart, {words}", "replicated-rolling-restart", metric, at_most=bound, unit=unit)
        for words, metric, bound, unit in (
            ("errors to the application", "failed", 0.0, "messages"),
            ("produce latency p99.9", "p999_ms", 1_000.0, "ms"),
        )
    ),
    *(
        Aim(words, "replicated-idle", "idle_percent", at_most=1.0, unit="% of a core", target=target)
        for words, target in (
            ("1,000 idle partitions of three replicas, CPU of a broker", OURS),
            ("1,000 idle partitions of three replicas, CPU of a broker, one host", SHARED),
        )
    ),
    *(
        Aim(
            f"10,000 partitions of three replicas, {words}",
            "replicated-many",
            metric,
            at_most=most,
            unit=unit,
        )
        for words, metric, most, unit in (
            ("start after kill -9", "start_s", 3.0, "s"),
            ("back in every ISR", "in_sync_s", 15.0, "s"),
            ("memory of each idle replica", "replica_bytes", 300.0, "bytes"),
            ("descriptors of all replicas", "replica_descriptors", 0.0, "files"),
        )
    ),
)


def verdicts(result: Result) -> list[Verdict]:
    return [
        Verdict(
            aim,
            result.ratio(aim.case, aim.metric, aim.target, THEIRS),
            result.ratio(aim.case, aim.metric, aim.target, TUNED),
            None if (spread := result.spread(aim.case, aim.target, aim.metric)) is None else spread.median,
        )
        for aim in AIMS
    ]
