"""Exactly once into a database: results and offsets change in one SQLite transaction.

The group coordinator is not asked where to go on; the database is, because the offset in it always fits the
results beside it. Kill this program at any time and start it again: no order is counted twice and none is
left out. The group still shares out the partitions, so several of these can run, one database each.

    python examples/sqlite_offsets.py --topic orders --database totals.db
"""

import argparse
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, Message, TopicPartition

_SCHEMA = """
CREATE TABLE IF NOT EXISTS totals (customer TEXT PRIMARY KEY, orders INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS positions (
    topic TEXT, partition INTEGER, next_offset INTEGER NOT NULL, PRIMARY KEY (topic, partition)
);
"""


class Totals:
    """How many orders each customer has made, and up to where that is true."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path, isolation_level=None)
        self._database.executescript(_SCHEMA)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of what is done inside happens, or nothing of it."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    def count(self, orders: Sequence[Message]) -> None:
        """Count the orders and move the positions past them. To be called inside a transaction."""
        for order in orders:
            customer, offset = order.key(), order.offset()
            assert isinstance(customer, bytes)
            assert offset is not None
            self._database.execute(
                "INSERT INTO totals VALUES (?, 1) ON CONFLICT DO UPDATE SET orders = orders + 1",
                (customer.decode(),),
            )
            self._database.execute(
                "INSERT INTO positions VALUES (?, ?, ?)"
                " ON CONFLICT DO UPDATE SET next_offset = excluded.next_offset",
                (order.topic(), order.partition(), offset + 1),
            )

    def position(self, topic: str, partition: int) -> int:
        """The first offset that is not counted."""
        found = self._database.execute(
            "SELECT next_offset FROM positions WHERE topic = ? AND partition = ?", (topic, partition)
        ).fetchone()
        return int(found[0]) if found else 0

    def orders(self) -> dict[str, int]:
        return dict(self._database.execute("SELECT customer, orders FROM totals ORDER BY customer"))

    def close(self) -> None:
        self._database.close()


def go_to_database(consumer: Consumer, partitions: list[TopicPartition], totals: Totals) -> None:
    """For `on_assign`: begin where the database is, whatever the group has committed."""
    consumer.assign(
        [
            TopicPartition(each.topic, each.partition, totals.position(each.topic, each.partition))
            for each in partitions
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Count orders per customer into SQLite, exactly once.")
    parser.add_argument("--bootstrap-server", default="127.0.0.1:9092")
    parser.add_argument("--topic", default="orders")
    parser.add_argument("--database", type=Path, default=Path("totals.db"))
    parser.add_argument("--group", default="totals")
    options = parser.parse_args()
    totals = Totals(options.database)
    consumer = Consumer(
        {
            "bootstrap.servers": options.bootstrap_server,
            "group.id": options.group,
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([options.topic], on_assign=lambda who, given: go_to_database(who, given, totals))
    try:
        while True:
            orders = [each for each in consumer.consume(500, 1.0) if each.error() is None]
            with totals.transaction():
                totals.count(orders)
    except KeyboardInterrupt:
        pass
    finally:
        consumer.close()
        totals.close()


if __name__ == "__main__":
    main()
