"""The loop behind `produce`: hand records to the producer, serve its reports, wait for the last of them."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from riverlog.cli.interrupts import serve
from riverlog.cli.records.delivery import Delivery
from riverlog.cli.records.json_form import InputRecord

if TYPE_CHECKING:
    from confluent_kafka import Producer

POLL_EVERY_RECORDS = 256
POLL_S = 0.1


def send_all(
    producer: "Producer",
    delivery: Delivery,
    records: Iterator[InputRecord],
    partition: int | None,
    rate: float | None,
) -> None:
    """At most `rate` records a second, all to `partition` if one is given. Ends early if nothing arrives."""
    started = time.monotonic()
    for number, record in enumerate(records):
        if rate is not None:
            _serve_until(producer, started + number / rate)
        elif number % POLL_EVERY_RECORDS == 0:
            serve(producer, 0)
        _send(producer, delivery, record, partition)
        if delivery.is_hopeless:
            return


def wait_for_deliveries(producer: "Producer", seconds: float) -> None:
    """Until nothing is under way. Every record has its own deadline, so this ends."""
    deadline = time.monotonic() + seconds
    while len(producer) and time.monotonic() < deadline:
        serve(producer, POLL_S)


def _send(producer: "Producer", delivery: Delivery, record: InputRecord, partition: int | None) -> None:
    chosen = partition if partition is not None else record.partition
    while True:
        try:
            producer.produce(
                delivery.topic,
                record.value,
                record.key,
                -1 if chosen is None else chosen,
                on_delivery=delivery.settle,
                timestamp=record.timestamp_ms or 0,
                headers=list(record.headers),
            )
        except BufferError:
            serve(producer, POLL_S)
        else:
            delivery.sent += 1
            return


def _serve_until(producer: "Producer", moment: float) -> None:
    while (left_s := moment - time.monotonic()) > 0:
        serve(producer, min(left_s, POLL_S))
    serve(producer, 0)
