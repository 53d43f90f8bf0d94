"""Apache Kafka's command line tools, which stand on its Java clients, find nothing wrong with us."""

from pathlib import Path

import pytest

from interop.conftest import Server, Tool

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
DELETE_RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"
API_VERSIONS = "org.apache.kafka.tools.BrokerApiVersionsCommand"
DUMP_LOG = "org.apache.kafka.tools.DumpLogSegments"
COMPRESSIONS = ["none", "gzip", "snappy", "lz4", "zstd"]


def test_kafka_topics_creates_describes_grows_and_deletes_a_topic(server: Server, tool: Tool) -> None:
    at = ("--bootstrap-server", server.bootstrap)
    tool(TOPICS, *at, "--create", "--topic", "orders", "--partitions", "3", "--config", "retention.ms=60000")
    described = tool(TOPICS, *at, "--describe", "--topic", "orders")
    assert "PartitionCount: 3" in described
    assert "retention.ms=60000" in described
    tool(TOPICS, *at, "--alter", "--topic", "orders", "--partitions", "5")
    assert "PartitionCount: 5" in tool(TOPICS, *at, "--describe", "--topic", "orders")
    assert "orders" in tool(TOPICS, *at, "--list").split()
    tool(TOPICS, *at, "--delete", "--topic", "orders")
    assert "orders" not in tool(TOPICS, *at, "--list").split()


def test_kafka_configs_alters_and_describes_topics_and_brokers(server: Server, tool: Tool) -> None:
    at = ("--bootstrap-server", server.bootstrap)
    tool(TOPICS, *at, "--create", "--topic", "settings")
    entity = ("--entity-type", "topics", "--entity-name", "settings")
    tool(
        CONFIGS,
        *at,
        "--alter",
        *entity,
        "--add-config",
        "segment.bytes=2097152,cleanup.policy=[compact,delete]",
    )
    described = tool(CONFIGS, *at, "--describe", *entity)
    assert "segment.bytes=2097152" in described
    assert "cleanup.policy=compact,delete" in described
    tool(CONFIGS, *at, "--alter", *entity, "--delete-config", "segment.bytes")
    assert "segment.bytes" not in tool(CONFIGS, *at, "--describe", *entity)
    tool(
        CONFIGS,
        *at,
        "--alter",
        "--entity-type",
        "brokers",
        "--entity-default",
        "--add-config",
        "log.retention.ms=7200000",
    )
    assert "log.retention.ms=7200000" in tool(
        CONFIGS, *at, "--describe", "--entity-type", "brokers", "--entity-default"
    )


@pytest.mark.parametrize("codec", COMPRESSIONS)
def test_the_console_producer_and_consumer_pass_records_through(
    server: Server, tool: Tool, codec: str
) -> None:
    topic = f"console-{codec}"
    at = ("--bootstrap-server", server.bootstrap)
    tool(TOPICS, *at, "--create", "--topic", topic)
    lines = [f"key-{number}:value {number} äöü" for number in range(200)]
    keyed = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    tool(PRODUCER, *at, "--topic", topic, "--compression-codec", codec, *keyed, stdin="\n".join(lines) + "\n")
    printed = tool(
        CONSUMER, *at, "--topic", topic, "--partition", "0", "--offset", "earliest",
        "--max-messages", "200", "--timeout-ms", "30000",
        "--formatter-property", "print.key=true", "--formatter-property", "key.separator=:",
    )  # fmt: skip
    assert printed.splitlines() == lines


def test_the_java_producer_writes_idempotently_with_acks_all(server: Server, tool: Tool) -> None:
    at = ("--bootstrap-server", server.bootstrap)
    tool(TOPICS, *at, "--create", "--topic", "performance", "--partitions", "4")
    report = tool(
        PERFORMANCE, "--topic", "performance", "--num-records", "100000", "--record-size", "100",
        "--throughput", "-1", "--bootstrap-server", server.bootstrap,
        "--command-property", "acks=all", "enable.idempotence=true", "compression.type=lz4",
    )  # fmt: skip
    assert "100000 records sent" in report
    ends = tool(OFFSETS, *at, "--topic", "performance").split()
    assert sum(int(line.rpartition(":")[2]) for line in ends) == 100_000


def test_kafka_get_offsets_delete_records_and_log_dirs_agree(
    server: Server, tool: Tool, tmp_path: Path
) -> None:
    at = ("--bootstrap-server", server.bootstrap)
    tool(TOPICS, *at, "--create", "--topic", "trimmed")
    tool(PRODUCER, *at, "--topic", "trimmed", stdin="".join(f"{number}\n" for number in range(10)))
    request = tmp_path / "request.json"
    request.write_text('{"partitions":[{"topic":"trimmed","partition":0,"offset":4}],"version":1}')
    assert "low_watermark: 4" in tool(DELETE_RECORDS, *at, "--offset-json-file", str(request))
    assert tool(OFFSETS, *at, "--topic", "trimmed", "--time", "earliest").strip() == "trimmed:0:4"
    assert '"partition":"trimmed-0"' in tool(LOG_DIRS, *at, "--describe", "--topic-list", "trimmed")


def test_kafka_broker_api_versions_lists_what_we_advertise(server: Server, tool: Tool) -> None:
    listed = tool(API_VERSIONS, "--bootstrap-server", server.bootstrap)
    assert "Produce(0): 0 to 13 [usable: 13]" in listed
    assert "Fetch(1): 4 to 18 [usable: 18]" in listed


def test_kafka_dump_log_reads_every_file_we_write(server: Server, tool: Tool) -> None:
    at = ("--bootstrap-server", server.bootstrap)
    tool(TOPICS, *at, "--create", "--topic", "dumped", "--config", "segment.bytes=1048576")
    tool(
        PERFORMANCE, "--topic", "dumped", "--num-records", "50000", "--record-size", "100",
        "--throughput", "-1", "--bootstrap-server", server.bootstrap,
        "--command-property", "compression.type=zstd",
    )  # fmt: skip
    directory = server.data_dir / "dumped-0"
    logs = sorted(directory.glob("*.log"))
    assert len(logs) > 1, "the topic was to roll into several segments"
    dumped = tool(DUMP_LOG, "--files", ",".join(map(str, logs)), "--print-data-log", "--deep-iteration")
    assert dumped.count("| offset:") == 50_000
    closed = [log.with_suffix(suffix) for log in logs[:-1] for suffix in (".index", ".timeindex")]
    report = tool(DUMP_LOG, "--files", ",".join(map(str, closed)), "--verify-index-only")
    for complaint in ("Mismatches", "missing", "out of order", "Index sanity", "Found"):
        assert complaint not in report
    snapshots = sorted(directory.glob("*.snapshot"))
    assert snapshots
    tool(DUMP_LOG, "--files", ",".join(map(str, snapshots)))
