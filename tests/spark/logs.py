"""Topics with known records, and how a read of them is set up."""

from collections.abc import Iterable, Sequence

from confluent_kafka import Producer
from pyspark.sql import DataFrame, Row, SparkSession

from riverlog.testing import Broker

Headers = Sequence[tuple[str, bytes | None]]


def put(
    broker: Broker,
    topic: str,
    values: Iterable[str | None],
    *,
    partition: int = 0,
    key: bytes | None = None,
    timestamp_ms: int | None = None,
    headers: Headers | None = None,
    compression: str = "none",
) -> None:
    """Acknowledged when it returns."""
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0, "compression.type": compression}
    )
    for value in values:
        producer.produce(
            topic,
            None if value is None else value.encode(),
            key=key,
            partition=partition,
            headers=list(headers or []),
            timestamp=timestamp_ms or 0,
        )
    assert producer.flush(30) == 0


def put_in_transaction(broker: Broker, topic: str, values: Iterable[str], *, commits: bool) -> None:
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": f"{topic}-{commits}"}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value.encode(), partition=0)
    producer.flush(30)
    if commits:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)


def batch(spark: SparkSession, broker: Broker, **options: object) -> DataFrame:
    """Names of options with underscores for dots."""
    reader = spark.read.format("riverlog").option("kafka.bootstrap.servers", broker.bootstrap_servers)
    return reader.options(**_named(options)).load()


def stream(spark: SparkSession, broker: Broker, **options: object) -> DataFrame:
    reader = spark.readStream.format("riverlog").option("kafka.bootstrap.servers", broker.bootstrap_servers)
    return reader.options(**_named(options)).load()


def values(frame: DataFrame) -> list[str]:
    rows: list[Row] = frame.selectExpr("cast(value as string) as value").collect()
    return sorted(row.value for row in rows)


def numbered(first: int, end: int) -> list[str]:
    return [f"{number:05d}" for number in range(first, end)]


def _named(options: dict[str, object]) -> dict[str, str]:
    texts = {True: "true", False: "false"}
    return {
        name.replace("_", "."): texts[value] if isinstance(value, bool) else str(value)
        for name, value in options.items()
    }
