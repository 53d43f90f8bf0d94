"""A librdkafka consumer finds out that what it had read was lost (KIP-320).

The Java consumer has the same in `interop/test_unclean_election.py`.
"""

import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from riverlog.testing import Cluster
from tests.delivery.unclean_election import KEPT, LOST, TOPIC, UncleanElection

WAIT_S = 60.0


def test_librdkafka_is_told_that_the_log_was_truncated_below_what_it_had_read() -> None:
    with Cluster(3, {"min.insync.replicas": 1}) as cluster:
        election = UncleanElection(cluster)
        consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "group.id": "reader",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
            }
        )
        consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])
        election.write_what_is_lost()
        read, error = _read(consumer, KEPT + LOST)
        assert error is None
        assert read[-1] == b"lost 9"
        election.lose_it()
        read, error = _read(consumer, 1)
        consumer.close()
        assert read == []
        assert error is not None
        # With this way to reset, the cause is told in words only.
        assert error.code() == KafkaError._AUTO_OFFSET_RESET, error
        assert f"truncation detected at offset {KEPT + LOST} " in error.str()
        assert f"end offset is {KEPT} " in error.str()


def _read(consumer: Consumer, count: int) -> tuple[list[bytes | None], KafkaError | None]:
    """So many values, or as many as come before an error."""
    found: list[bytes | None] = []
    deadline = time.monotonic() + WAIT_S
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} records"
        try:
            message = consumer.poll(0.1)
        except KafkaException as failure:
            return found, failure.args[0]
        if message is not None and (error := message.error()) is not None:
            return found, error
        if message is not None:
            found.append(message.value())
    return found, None
