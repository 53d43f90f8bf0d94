"""What is measured, in one place: the name in the JSON, the words, the unit, and which way is better."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    words: str
    unit: str
    is_more_better: bool = False


_ALL = (
    Metric("mb_s", "throughput", "MB/s", is_more_better=True),
    Metric("messages_s", "messages", "per s", is_more_better=True),
    Metric("requests_s", "requests", "per s", is_more_better=True),
    Metric("transactions_s", "transactions", "per s", is_more_better=True),
    Metric("mb_per_cpu_s", "cleaned per core", "MB/s", is_more_better=True),
    Metric("broker_cpu_s_per_gb", "broker CPU per GB", "CPU-s"),
    Metric("broker_cpu_us", "broker CPU per request", "us"),
    Metric("driver_cpu_us", "load generator's CPU per request", "us"),
    Metric("broker_cpu_s_per_million", "broker CPU per million requests", "CPU-s"),
    Metric("broker_cpu_ms", "broker CPU of each", "ms"),
    Metric("client_cpu_s_per_gb", "client CPU per GB", "CPU-s"),
    Metric("p50_ms", "latency p50", "ms"),
    Metric("p99_ms", "latency p99", "ms"),
    Metric("p999_ms", "latency p99.9", "ms"),
    Metric("join_ms", "time until all have partitions", "ms"),
    Metric("start_s", "start to first acknowledged message", "s"),
    Metric("start_cpu_s", "broker CPU until then", "CPU-s"),
    Metric("rss_mb", "resident memory", "MB"),
    Metric("max_ms", "longest latency", "ms"),
    Metric("failed", "errors to the application", "messages"),
    Metric("missed_s", "until all partitions are written again", "s"),
    Metric("in_sync_s", "start to in sync everywhere", "s"),
    Metric("idle_percent", "processor time of the busiest broker", "% of a core"),
    Metric("idle_all_percent", "the same of all processes, per broker", "% of a core"),
    Metric("replica_bytes", "memory of each idle replica", "bytes"),
    Metric("replica_descriptors", "open descriptors for all replicas", "files"),
)
METRICS = {metric.name: metric for metric in _ALL}
