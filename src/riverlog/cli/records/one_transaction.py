"""All records of a `produce --transactional` in one transaction: all of them arrive, or none is seen."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from riverlog.cli.asking.connection import Connection
from riverlog.cli.interrupts import postponed
from riverlog.cli.printing.output import remark
from riverlog.cli.records.delivery import Delivery

if TYPE_CHECKING:
    from confluent_kafka import Producer


@contextmanager
def in_one_transaction(connection: Connection, producer: "Producer", delivery: Delivery) -> Iterator[None]:
    """Committed at the end of the block if everything arrived; aborted after a failure or an interrupt."""
    from confluent_kafka import KafkaException

    try:
        with postponed():
            producer.init_transactions(connection.timeout_s)
            producer.begin_transaction()
    except KafkaException as error:
        raise connection.failure(error.args[0], "no transaction was begun") from None
    try:
        yield
        delivery.raise_if_failed()
        with postponed():
            producer.commit_transaction(connection.timeout_s)
    except BaseException as error:
        with postponed():
            _abort(connection, producer)
        if isinstance(error, KafkaException):
            raise connection.failure(error.args[0], "the transaction was not committed") from None
        raise
    remark("the transaction is committed")


def _abort(connection: Connection, producer: "Producer") -> None:
    """Where that fails as well, the broker aborts it when its time is over."""
    from confluent_kafka import KafkaException

    try:
        producer.abort_transaction(connection.timeout_s)
    except KafkaException as error:
        remark(f"the transaction could not be aborted ({error.args[0].str()}); it times out")
    else:
        remark("the transaction is aborted: none of its records is seen")
