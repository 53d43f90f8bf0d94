"""docs/spark/migrating.md has every option of Spark's Kafka connector, and each does what its row says."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest

from riverlog.spark.connection import OptionError
from riverlog.spark.sink.options import SinkOptions, sink_options
from riverlog.spark.source.options import SourceOptions, batch_options, stream_options

PAGE: Final = Path(__file__).parents[2] / "docs" / "spark" / "migrating.md"
BOOTSTRAP: Final = "kafka.bootstrap.servers"
SERVERS: Final = {BOOTSTRAP: "localhost:9092"}
SUBSCRIBED: Final = {**SERVERS, "subscribe": "t"}
BATCH_ONLY: Final = ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")
SELECTIONS: Final = {"subscribe": "t,u", "subscribePattern": "t.*", "assign": '{"t": [0]}'}
VALUES: Final = {
    BOOTSTRAP: "other:9093",
    "startingOffsets": "earliest",
    "endingOffsets": '{"t": {"0": 7}}',
    "startingTimestamp": "99",
    "endingTimestamp": "99",
    "startingOffsetsByTimestamp": '{"t": {"0": 5}}',
    "endingOffsetsByTimestamp": '{"t": {"0": 5}}',
    "startingOffsetsByTimestampStrategy": "latest",
    "failOnDataLoss": "false",
    "maxTriggerDelay": "1m",
    "includeHeaders": "true",
    "groupIdPrefix": "prefix",
    "topic": "other",
    "kafka.group.id": "group",
    "kafka.isolation.level": "read_committed",
    "kafka.check.crcs": "false",
    "kafka.client.id": "client",
    "kafka.compression.type": "zstd",
    "kafka.transactional.id": "mine",
    "kafka.partitioner.class": "org.example.Mine",
}
"""Of the options that take something other than a number, one that is not the default."""
NUMBER: Final = "1000"
CONNECTOR: Final = frozenset(
    {
        "assign",
        "endingoffsets",
        "endingoffsetsbytimestamp",
        "endingtimestamp",
        "failondataloss",
        "fetchoffset.numretries",
        "fetchoffset.retryintervalms",
        "groupidprefix",
        "includeheaders",
        "kafkaconsumer.polltimeoutms",
        "maxoffsetspertrigger",
        "maxrecordsperpartition",
        "maxtriggerdelay",
        "minoffsetspertrigger",
        "minpartitions",
        "startingoffsets",
        "startingoffsetsbytimestamp",
        "startingoffsetsbytimestampstrategy",
        "startingtimestamp",
        "subscribe",
        "subscribepattern",
        "topic",
        "spark.kafka.consumer.cache.capacity",
        "spark.kafka.consumer.cache.evictorthreadruninterval",
        "spark.kafka.consumer.cache.jmx.enable",
        "spark.kafka.consumer.cache.timeout",
        "spark.kafka.consumer.fetcheddata.cache.evictorthreadruninterval",
        "spark.kafka.consumer.fetcheddata.cache.timeout",
        "spark.kafka.producer.cache.evictorthreadruninterval",
        "spark.kafka.producer.cache.timeout",
        "kafka.auto.offset.reset",
        "kafka.key.deserializer",
        "kafka.value.deserializer",
        "kafka.key.serializer",
        "kafka.value.serializer",
        "kafka.enable.auto.commit",
        "kafka.interceptor.classes",
        "kafka.group.id",
        "kafka.max.poll.records",
        "kafka.receive.buffer.bytes",
    }
)
"""What the connector's jar names; interop/test_spark_connector.py compares it with the jar."""


@dataclass(frozen=True, slots=True)
class Row:
    part: str
    option: str
    here: str
    reason: str

    @property
    def value(self) -> str:
        return VALUES.get(self.option) or SELECTIONS.get(self.option) or NUMBER

    @property
    def is_refused(self) -> bool:
        return self.reason.startswith("refused")


def rows() -> list[Row]:
    found: list[Row] = []
    part = ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("### "):
            part = line.removeprefix("### ")
        elif matched := re.fullmatch(r"\| `(\S+)` \| ([a-z ]+) \|(.*)\|", line):
            found.append(Row(part, matched[1], matched[2], matched[3].strip()))
    return found


ROWS: Final = rows()
SOURCE: Final = [each for each in ROWS if each.part == "Source"]
SINK: Final = [each for each in ROWS if each.part == "Sink"]


def _named(row: Row) -> str:
    return f"{row.part}-{row.option}"


def of(here: str, among: list[Row]) -> list[Row]:
    return [each for each in among if each.here == here]


def source(row: Row, *, with_option: bool) -> SourceOptions:
    """Without what is kept of the options as they were given."""
    options = SUBSCRIBED
    if with_option:
        options = {**(SERVERS if row.option in SELECTIONS else SUBSCRIBED), row.option: row.value}
    parsed = batch_options(options) if row.option in BATCH_ONLY else stream_options(options)
    return replace(parsed, connection=replace(parsed.connection, properties={}))


def sink(options: Mapping[str, str]) -> SinkOptions:
    return sink_options({**SERVERS, "topic": "t", **options}, is_stream=False)


def test_every_option_of_the_connector_has_a_row() -> None:
    assert {each.option.lower() for each in ROWS} >= CONNECTOR
    assert {each.here for each in ROWS} == {"same", "different", "not needed"}
    assert all(each.reason for each in ROWS if each.here != "same")


@pytest.mark.parametrize("row", of("same", SOURCE), ids=_named)
def test_what_the_source_takes_as_the_connector_does_has_an_effect(
    row: Row, caplog: pytest.LogCaptureFixture
) -> None:
    if row.is_refused:
        with pytest.raises(OptionError, match=f"option {row.option}: cannot be set"):
            source(row, with_option=True)
    else:
        assert source(row, with_option=True) != source(row, with_option=False)
    assert not caplog.records


@pytest.mark.parametrize("row", of("same", SINK), ids=_named)
def test_what_the_sink_takes_as_the_connector_does_has_an_effect(
    row: Row, caplog: pytest.LogCaptureFixture
) -> None:
    if row.is_refused:
        with pytest.raises(OptionError, match=f"option {row.option}: cannot be set"):
            sink({row.option: row.value})
    else:
        assert sink({row.option: row.value}) != sink({})
    assert not caplog.records


@pytest.mark.parametrize("row", of("not needed", SOURCE), ids=_named)
def test_what_the_source_does_not_need_may_stay_and_has_no_effect(row: Row) -> None:
    assert source(row, with_option=True) == source(row, with_option=False)


@pytest.mark.parametrize("row", of("not needed", SINK), ids=_named)
def test_what_the_sink_does_not_need_may_stay_and_has_no_effect(row: Row) -> None:
    assert sink({row.option: row.value}) == sink({})


def _prefix_names_the_group() -> None:
    assert stream_options(SUBSCRIBED).group_prefix == "riverlog-spark"
    assert stream_options({**SUBSCRIBED, "groupIdPrefix": "mine"}).group_prefix == "mine"


def _group_is_taken() -> None:
    assert stream_options({**SUBSCRIBED, "kafka.group.id": "mine"}).group_id == "mine"


def _partition_bytes() -> None:
    assert stream_options(SUBSCRIBED).reading.partition_bytes == 8 * 1024 * 1024
    asked = stream_options({**SUBSCRIBED, "kafka.max.partition.fetch.bytes": "4096"})
    assert asked.reading.partition_bytes == 4096


def _only_plaintext() -> None:
    stream_options({**SUBSCRIBED, "kafka.security.protocol": "PLAINTEXT"})
    with pytest.raises(OptionError, match="security"):
        stream_options({**SUBSCRIBED, "kafka.security.protocol": "SASL_SSL"})


def _headers_are_written_anyway() -> None:
    assert sink({"includeHeaders": "true"}) == sink({"includeHeaders": "false"}) == sink({})


def _acks() -> None:
    for wrong in ({"kafka.acks": "0"}, {"kafka.acks": "1"}):
        with pytest.raises(OptionError, match="acks"):
            sink(wrong)
    loose = {"deliveryGuarantee": "at-least-once", "kafka.enable.idempotence": "false"}
    assert sink({**loose, "kafka.acks": "1"}).writing.acks == 1


def _idempotence() -> None:
    with pytest.raises(OptionError, match="idempotence"):
        sink({"kafka.enable.idempotence": "false"})
    loose = {"deliveryGuarantee": "at-least-once", "kafka.enable.idempotence": "false"}
    assert not sink(loose).is_idempotent


def _batch_size() -> None:
    assert sink({}).batch_bytes == 1_000_000
    assert sink({"kafka.batch.size": "4096"}).batch_bytes == 4096


def _in_flight() -> None:
    key = "kafka.max.in.flight.requests.per.connection"
    assert sink({key: "2"}) != sink({})
    assert sink({key: "50"}) == sink({key: "5"}) == sink({})


def _transaction_timeout() -> None:
    assert sink({}).transaction_timeout_ms is None
    assert sink({"kafka.transaction.timeout.ms": "1000"}).transaction_timeout_ms == 1000


DIFFERENCES: Final[Mapping[str, Callable[[], None]]] = {
    "groupIdPrefix": _prefix_names_the_group,
    "kafka.group.id": _group_is_taken,
    "kafka.max.partition.fetch.bytes": _partition_bytes,
    "kafka.security.protocol": _only_plaintext,
    "includeHeaders": _headers_are_written_anyway,
    "kafka.acks": _acks,
    "kafka.enable.idempotence": _idempotence,
    "kafka.batch.size": _batch_size,
    "kafka.max.in.flight.requests.per.connection": _in_flight,
    "kafka.transaction.timeout.ms": _transaction_timeout,
}


@pytest.mark.parametrize("row", of("different", ROWS), ids=_named)
def test_what_is_different_is_as_the_row_says(row: Row) -> None:
    DIFFERENCES[row.option]()
