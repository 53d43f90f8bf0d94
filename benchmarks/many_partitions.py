"""100,000 idle partitions on one node: what they cost in memory and at start-up."""

import tempfile
import time
from pathlib import Path

from benchmarks import load
from benchmarks.figures import Figure
from benchmarks.servers import riverlog

PARTITIONS = 100_000
TOPIC_PARTITIONS = 1_000


def run() -> list[Figure]:
    with tempfile.TemporaryDirectory() as directory:
        with riverlog(Path(directory)) as broker:
            empty_mb, empty_s = broker.rss_mb, broker.ready_after_s
            started = time.perf_counter()
            with load.connect(broker.address) as client:
                for number in range(PARTITIONS // TOPIC_PARTITIONS):
                    load.call(client, load.Frames(f"topic-{number}").create(partitions=TOPIC_PARTITIONS))
            creation_s = time.perf_counter() - started
        with riverlog(Path(directory)) as broker:
            full_mb, full_s = broker.rss_mb, broker.ready_after_s
    return [
        Figure(f"create {PARTITIONS:,} partitions", creation_s, "s"),
        Figure(f"start with {PARTITIONS:,} idle partitions", full_s, "s", empty_s, "with none"),
        Figure("memory per idle partition", (full_mb - empty_mb) * 1e6 / PARTITIONS, "bytes"),
    ]
