"""Small requests from many connections to the brokers of one machine: several, or one that has threads.

Riverlog is `serve --brokers 2`, which is started for this case; Apache Kafka is the one that other cases
have. Connections are shared out evenly, each to the leader of its partition. The load comes from a C program
for each broker; on a machine with two cores it takes from what the brokers have, so its processor time is
shown as well.
"""

import resource
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks import load
from benchmarks.compare import topics
from benchmarks.compare.brokers import Riverlog, Target
from benchmarks.compare.case import Metrics, Tools, cpu_of, fresh, per
from benchmarks.compare.latency import MESSAGE_BYTES, REQUESTS_S
from benchmarks.compare.replicated.clusters import Supervised
from riverlog.records.compression import Codec
from riverlog.testing.cluster_records import ClusterRecords

BROKERS: Final = 2
CONNECTIONS: Final = 1_000
_ADMIN_S: Final = 60.0


class _Prepared(NamedTuple):
    served: Target
    topic: str
    frames: dict[load.Address, Path]
    """By broker, a request for the partition that it leads."""


@dataclass(frozen=True, slots=True)
class SharedRequests:
    name: str = f"shared-requests-c{CONNECTIONS}"
    words: str = f"one-record requests, {CONNECTIONS:,} connections in total, Riverlog with {BROKERS} brokers"
    seconds: float = REQUESTS_S + 0.2 + CONNECTIONS / 2_000
    limit: str | None = None
    _held: dict[str, _Prepared] = field(default_factory=dict, compare=False)

    def prepare(self, target: Target, tools: Tools) -> None:
        served, leaders = target, [target.address]
        topic = fresh("shared")
        if isinstance(target.flavour, Riverlog):
            served = Supervised(tools.directory / fresh("brokers"), BROKERS)
            served.launch()
            topics.create(served.address, topic, BROKERS)
            led = ClusterRecords(served.bootstrap, _ADMIN_S).leaders(topic)
            leaders = [served.address_of(number) for _, number in sorted(led.items()) if number is not None]
        else:
            topics.create(served.address, topic, 1)
        frames = {address: tools.directory / fresh("frame") for address in leaders}
        self._held[target.name] = _Prepared(served, topic, frames)
        record = topics.batch(1, MESSAGE_BYTES, Codec.NONE)
        for partition, (address, path) in enumerate(frames.items()):
            path.write_bytes(topics.produce_frame(topic, [partition], record))
            with topics.client(address) as connection:
                topics.send_until_taken(connection, path.read_bytes())

    def measure(self, target: Target, tools: Tools) -> Metrics:
        served, _, frames = self._held[target.name]
        driven_s = _children_cpu_s()

        def drive(address: load.Address) -> dict[str, float]:
            host, port = address
            return tools.driver.run(
                "requests",
                {},
                brokers=f"{host}:{port}",
                frame=frames[address],
                connections=CONNECTIONS // len(frames),
                seconds=REQUESTS_S * max(0.3, tools.scale),
            )

        with cpu_of(served) as spent, ThreadPoolExecutor(len(frames)) as drivers:
            done = list(drivers.map(drive, frames))
        requests = sum(each["requests"] for each in done) + CONNECTIONS
        return (
            {"requests_s": sum(each["requests"] / each["seconds"] for each in done)}
            | per(spent, requests, "broker_cpu_us", 1e6)
            | per([_children_cpu_s() - driven_s], requests, "driver_cpu_us", 1e6)
        )

    def clean_up(self, target: Target, tools: Tools) -> None:
        served, topic, _ = self._held.pop(target.name)
        if isinstance(served, Supervised):
            served.stop()
            shutil.rmtree(served.root, ignore_errors=True)
        else:
            topics.delete(served.address, topic)


def _children_cpu_s() -> float:
    """Of the drivers that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
