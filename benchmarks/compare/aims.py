"""The figures to reach, as ratios to Apache Kafka in the same run: data, with a row for each."""

from dataclasses import dataclass

from benchmarks.compare.results import Result

OURS, THEIRS, TUNED = "riverlog", "kafka", "kafka-tuned"


@dataclass(frozen=True, slots=True)
class Aim:
    words: str
    case: str
    metric: str
    at_least: float | None = None
    at_most: float | None = None

    @property
    def text(self) -> str:
        if self.at_least is not None:
            return f"at least {self.at_least:g}x"
        return f"at most {self.at_most:g}x"

    @property
    def command(self) -> str:
        return f"python -m benchmarks.compare --case {self.case}"

    def is_met_by(self, ratio: float) -> bool:
        if self.at_least is not None:
            return ratio >= self.at_least
        return self.at_most is not None and ratio <= self.at_most


@dataclass(frozen=True, slots=True)
class Verdict:
    """An aim beside what was measured; no ratio means that one of the two could not be measured."""

    aim: Aim
    ratio: float | None
    ratio_tuned: float | None

    @property
    def is_met(self) -> bool | None:
        return None if self.ratio is None else self.aim.is_met_by(self.ratio)


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
    Aim("transactions per second", "transactions", "transactions_s", at_least=1.0),
    Aim("group join, 50 members, time", "group-join-50", "join_ms", at_most=1.0),
    Aim("group join, one consumer, time", "group-join-consumer", "join_ms", at_most=1.0),
    Aim("compaction per core", "compaction", "mb_per_cpu_s", at_least=1.0),
)


def verdicts(result: Result) -> list[Verdict]:
    return [
        Verdict(
            aim,
            result.ratio(aim.case, aim.metric, OURS, THEIRS),
            result.ratio(aim.case, aim.metric, OURS, TUNED),
        )
        for aim in AIMS
    ]
