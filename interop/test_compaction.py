"""Kafka's own dump of log segments finds nothing wrong with what our cleaner wrote."""

import random
import re
import time
from pathlib import Path

from interop.conftest import Server, Tool

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
DUMP_LOG = "org.apache.kafka.tools.DumpLogSegments"
KEYS = 50


def test_kafka_dump_log_reads_what_our_cleaner_wrote(server: Server, tool: Tool) -> None:
    at = ("--bootstrap-server", server.bootstrap)
    broker = ("--entity-type", "brokers", "--entity-default")
    tool(CONFIGS, *at, "--alter", *broker, "--add-config", "log.cleaner.backoff.ms=200")
    tool(
        TOPICS, *at, "--create", "--topic", "compacted",
        "--config", "cleanup.policy=compact", "--config", "segment.bytes=1048576",
        "--config", "min.cleanable.dirty.ratio=0.01",
    )  # fmt: skip
    chance = random.Random(1)  # So that compression leaves enough for several segments.
    lines = [f"key-{number % KEYS}:value-{number}-{chance.randbytes(200).hex()}" for number in range(10_000)]
    lines[-KEYS] = f"key-{(10_000 - KEYS) % KEYS}:gone"
    keyed = (
        "--reader-property", "parse.key=true", "--reader-property", "key.separator=:",
        "--reader-property", "null.marker=gone",
    )  # fmt: skip
    # Twice, so that everything of the first time is superseded and lies in closed segments.
    for _ in range(2):
        tool(
            PRODUCER, *at, "--topic", "compacted", "--compression-codec", "lz4", *keyed,
            stdin="\n".join(lines) + "\n",
        )  # fmt: skip
    directory = server.data_dir / "compacted-0"
    _wait_until_cleaned(server.data_dir)
    topic = ("--entity-type", "topics", "--entity-name", "compacted")
    tool(CONFIGS, *at, "--alter", *topic, "--add-config", "min.cleanable.dirty.ratio=1.0")
    logs = _logs_at_rest(directory)
    dumped = tool(DUMP_LOG, "--files", ",".join(map(str, logs)), "--print-data-log", "--deep-iteration")
    assert "isvalid: false" not in dumped
    offsets = [int(found) for found in re.findall(r"\| offset: (\d+)", dumped)]
    assert offsets == sorted(set(offsets))
    assert len(offsets) < 15_000
    closed = [log.with_suffix(suffix) for log in logs[:-1] for suffix in (".index", ".timeindex")]
    report = tool(DUMP_LOG, "--files", ",".join(map(str, closed)), "--verify-index-only")
    for complaint in ("Mismatches", "missing", "out of order", "Index sanity", "Found"):
        assert complaint not in report
    printed = tool(
        CONSUMER, *at, "--topic", "compacted", "--partition", "0", "--offset", "earliest",
        "--max-messages", str(len(offsets)), "--timeout-ms", "30000",
        "--formatter-property", "print.key=true", "--formatter-property", "key.separator=:",
    )  # fmt: skip
    newest = dict(line.split(":", 1) for line in printed.splitlines())
    assert len(newest) == KEYS
    assert newest["key-49"].startswith("value-9999-")


def _logs_at_rest(directory: Path) -> list[Path]:
    """Once the cleaner, which is to do nothing more, has finished what it had begun."""
    deadline = time.monotonic() + 60
    before: list[Path] = []
    while before != (found := sorted(directory.glob("*.log"))) or any(directory.glob("*.cleaned")):
        assert time.monotonic() < deadline, f"the cleaner does not rest: {found}"
        before = found
        time.sleep(1)
    return found


def _wait_until_cleaned(data_dir: Path) -> None:
    checkpoint = data_dir / "cleaner-offset-checkpoint"
    deadline = time.monotonic() + 60
    while not (checkpoint.exists() and "compacted" in checkpoint.read_text()):
        assert time.monotonic() < deadline, "the topic was not cleaned"
        time.sleep(0.1)
