"""Kafka's transactional Java producer, and its tools for transactions, against us."""

from pathlib import Path

from confluent_kafka import Producer

from interop.conftest import Server, Tool

TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
TOPICS = "org.apache.kafka.tools.TopicCommand"
PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
DUMP_LOG = "org.apache.kafka.tools.DumpLogSegments"


def test_the_java_producer_commits_transactions_with_an_epoch_for_each(server: Server, tool: Tool) -> None:
    at = ("--bootstrap-server", server.bootstrap)
    tool(TOPICS, *at, "--create", "--topic", "performed", "--partitions", "2")
    sent = tool(
        PERFORMANCE,
        *("--topic", "performed", "--num-records", "2000", "--record-size", "100", "--throughput", "-1"),
        *("--transactional-id", "performer", "--transaction-duration-ms", "50"),
        *("--command-property", f"bootstrap.servers={server.bootstrap}"),
    )
    assert "2000 records sent" in sent
    rows = _table(tool(TRANSACTIONS, *at, "describe", "--transactional-id", "performer"))
    assert rows[0]["TransactionState"] == "CompleteCommit"
    assert int(rows[0]["ProducerEpoch"]) >= 1, "raised by the end of a transaction"
    read = tool(
        CONSUMER,
        *at,
        *("--topic", "performed", "--partition", "0", "--offset", "0", "--isolation-level", "read_committed"),
        *("--max-messages", "100", "--timeout-ms", "20000"),
    )
    assert len(read.split()) == 100


def test_kafka_transactions_finds_describes_and_aborts(server: Server, tool: Tool) -> None:
    at = ("--bootstrap-server", server.bootstrap)
    tool(TOPICS, *at, "--create", "--topic", "left-open")
    producer = Producer({"bootstrap.servers": server.bootstrap, "transactional.id": "leaver", "log_level": 0})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce("left-open", b"a")
    producer.flush(10)
    listed = {row["TransactionalId"]: row for row in _table(tool(TRANSACTIONS, *at, "list"))}
    assert listed["leaver"]["TransactionState"] == "Ongoing"
    place = ("--topic", "left-open", "--partition", "0")
    (row,) = _table(tool(TRANSACTIONS, *at, "describe-producers", *place))
    assert row["CurrentTransactionStartOffset"] == "0"
    tool(TRANSACTIONS, *at, "find-hanging", "--broker-id", "1")
    tool(TRANSACTIONS, *at, "abort", *place, "--start-offset", "0")
    (row,) = _table(tool(TRANSACTIONS, *at, "describe-producers", *place))
    assert row["CurrentTransactionStartOffset"] == "None"
    tool(TRANSACTIONS, *at, "forceTerminateTransaction", "--transactionalId", "leaver")
    listed = {row["TransactionalId"]: row for row in _table(tool(TRANSACTIONS, *at, "list"))}
    assert listed["leaver"]["TransactionState"] in ("CompleteAbort", "Empty")


def test_dump_log_reads_our_transaction_state(server: Server, tool: Tool) -> None:
    logs = [str(path) for path in Path(server.data_dir).glob("__transaction_state-*/*.log")]
    dumped = tool(DUMP_LOG, "--transaction-log-decoder", "--files", ",".join(logs))
    assert '"transactionalId":"leaver"' in dumped
    assert '"clientTransactionVersion":2' in dumped
    assert "isvalid: false" not in dumped


def _table(text: str) -> list[dict[str, str]]:
    head, *rows = [line for line in text.splitlines() if "\t" in line]
    names = [name.strip() for name in head.split("\t")]
    return [dict(zip(names, (value.strip() for value in row.split("\t")), strict=False)) for row in rows]
