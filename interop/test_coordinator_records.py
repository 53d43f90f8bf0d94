"""Kafka's own tools read what our coordinators write to the internal topics."""

import re
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from interop.conftest import Server, Tool
from riverlog.coordinator.runtime.hashing import partition_for

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
DUMP_LOG = "org.apache.kafka.tools.DumpLogSegments"
OFFSETS_FORMATTER = "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"


def commit(server: Server, group: str, topic: str, offset: int) -> None:
    settings = {"bootstrap.servers": server.bootstrap, "group.id": group, "enable.auto.commit": False}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, 0, 0)])
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def test_dump_log_segments_decodes_committed_offsets(server: Server, tool: Tool) -> None:
    tool(
        TOPICS,
        "--bootstrap-server",
        server.bootstrap,
        "--create",
        "--topic",
        "committed",
        "--partitions",
        "1",
    )
    commit(server, "dump-readers", "committed", 4711)
    segments = [
        path for path in Path(server.data_dir).glob("__consumer_offsets-*/*.log") if path.stat().st_size
    ]
    assert segments
    dumped = "".join(tool(DUMP_LOG, "--offsets-decoder", "--files", str(path)) for path in segments)
    assert re.search(r'"group":"dump-readers","topic":"committed","partition":0', dumped)
    assert re.search(r'"offset":4711', dumped)
    assert "isvalid: true" in dumped
    assert "isvalid: false" not in dumped


def test_the_console_consumer_formats_committed_offsets(server: Server, tool: Tool) -> None:
    tool(
        TOPICS,
        "--bootstrap-server",
        server.bootstrap,
        "--create",
        "--topic",
        "formatted",
        "--partitions",
        "1",
    )
    commit(server, "format-readers", "formatted", 1234)
    shown = tool(
        CONSUMER,
        "--bootstrap-server",
        server.bootstrap,
        "--topic",
        "__consumer_offsets",
        "--partition",
        str(partition_for("format-readers", 50)),
        "--offset",
        "earliest",
        "--max-messages",
        "1",
        "--formatter",
        OFFSETS_FORMATTER,
    )
    assert '"group":"format-readers"' in shown
    assert '"offset":1234' in shown
