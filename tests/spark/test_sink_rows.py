"""Rows of Arrow batches as records: what arrives, where it arrives, and what is refused."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from riverlog.records.compression import Codec
from riverlog.records.murmur2 import murmur2, partition_for_key
from riverlog.records.record import records_of
from riverlog.spark.connection import OptionError
from riverlog.spark.sink import make_writer
from riverlog.spark.sink.options import Guarantee, check_columns, sink_options
from riverlog.spark.sink.placement import Bytes, Placement, RowRefused, hashes
from riverlog.spark.sink.rows import EncodeSettings, RowEncoder

Place = tuple[str, int]
Arrived = tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]

_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_BOOTSTRAP = {"kafka.bootstrap.servers": "localhost:9092"}
maybe_bytes = st.none() | st.binary(max_size=80)


def encoded(
    columns: Mapping[str, Any],
    *,
    topic: str | None = "t",
    partitions: int = 4,
    batch_bytes: int = 1_000_000,
    codec: Codec = Codec.NONE,
) -> dict[Place, list[list[Arrived]]]:
    """The records of each batch for each partition."""
    encoder = RowEncoder(
        EncodeSettings(topic, batch_bytes, 1 << 20, codec), Placement(lambda _: partitions), lambda: 1234
    )
    found: dict[Place, list[list[Arrived]]] = defaultdict(list)
    for group in encoder.encode(pa.RecordBatch.from_pydict(columns)):
        for batch in group:
            batch.sign(None, 0, is_transactional=False)
            records = list(records_of(b"".join(batch.pieces)))
            assert [each.offset for each in records] == list(range(len(records)))
            assert {each.timestamp_ms for each in records} == {1234}
            found[batch.topic, batch.partition].append([(r.key, r.value, tuple(r.headers)) for r in records])
    return found


def flat(found: dict[Place, list[list[Arrived]]]) -> dict[Place, list[Arrived]]:
    return {at: [each for batch in batches for each in batch] for at, batches in found.items()}


@given(st.lists(st.tuples(maybe_bytes, maybe_bytes), min_size=1, max_size=300), st.sampled_from(list(Codec)))
@settings(max_examples=60, deadline=None)
def test_every_row_arrives_once_in_order_where_the_java_client_puts_it(
    rows: Sequence[tuple[bytes | None, bytes | None]], codec: Codec
) -> None:
    keys, values = zip(*rows, strict=True)
    found = encoded({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())}, codec=codec)
    expected: dict[Place, list[Arrived]] = defaultdict(list)
    for key, value in rows:
        place = 1 if key is None else partition_for_key(key, 4)
        expected["t", place].append((key, value, ()))
    assert flat(found) == expected


@given(st.lists(st.binary(max_size=60), min_size=1, max_size=200))
@settings(max_examples=60, deadline=None)
def test_a_column_of_keys_is_hashed_as_key_by_key(keys: list[bytes]) -> None:
    lengths = np.array([len(key) for key in keys], np.int64)
    starts = np.cumsum(lengths) - lengths
    column = Bytes(np.frombuffer(b"".join(keys), np.uint8), starts, lengths)
    assert hashes(column).tolist() == [murmur2(key) & 0xFFFFFFFF for key in keys]


def test_a_very_long_key_is_hashed_too() -> None:
    keys = [b"k" * 5000, b"short"]
    column = Bytes(np.frombuffer(b"".join(keys), np.uint8), np.array([0, 5000]), np.array([5000, 5]))
    assert hashes(column).tolist() == [murmur2(key) & 0xFFFFFFFF for key in keys]


def test_a_slice_of_a_batch_is_written_as_the_slice() -> None:
    values = pa.array([b"%d" % n for n in range(100)], pa.binary())
    found = encoded({"key": values.slice(40, 5), "value": values.slice(40, 5)})
    assert sorted(r[1] or b"" for rs in flat(found).values() for r in rs) == [
        b"40",
        b"41",
        b"42",
        b"43",
        b"44",
    ]


def test_text_is_written_as_utf8() -> None:
    found = encoded({"key": pa.array(["schlüssel"]), "value": pa.array(["wert €"])})
    [[record]] = flat(found).values()
    assert record == ("schlüssel".encode(), "wert €".encode(), ())


def test_headers_arrive_in_order_and_null_headers_are_none() -> None:
    headers = [[{"key": "a", "value": b"1"}, {"key": "a", "value": None}], None, []]
    columns = {"value": pa.array([b"x", b"y", b"z"], pa.binary()), "headers": pa.array(headers, _HEADERS)}
    [records] = flat(encoded(columns)).values()
    assert records == [(None, b"x", (("a", b"1"), ("a", None))), (None, b"y", ()), (None, b"z", ())]


def test_a_null_value_is_a_tombstone_and_an_empty_one_is_not() -> None:
    columns = {"key": pa.array([b"k", b"k"], pa.binary()), "value": pa.array([None, b""], pa.binary())}
    [records] = flat(encoded(columns)).values()
    assert [value for _, value, _ in records] == [None, b""]


def test_the_column_partition_comes_before_the_key_and_null_leaves_it_to_the_key() -> None:
    columns = {
        "key": pa.array([b"key", b"key"], pa.binary()),
        "value": pa.array([b"1", b"2"], pa.binary()),
        "partition": pa.array([3, None], pa.int32()),
    }
    found = flat(encoded(columns))
    assert found["t", 3][0][1] == b"1"
    assert found["t", partition_for_key(b"key", 4)][-1][1] == b"2"


def test_a_partition_that_the_topic_does_not_have_is_refused() -> None:
    columns = {"value": pa.array([b"1"], pa.binary()), "partition": pa.array([4], pa.int32())}
    with pytest.raises(RowRefused, match="partition 4 of topic t, which has 4"):
        encoded(columns)


def test_rows_go_to_the_topic_of_their_column_unless_the_option_names_one() -> None:
    columns = {"value": pa.array([b"1", b"2", b"3"], pa.binary()), "topic": pa.array(["a", "b", "a"])}
    found = flat(encoded(columns, topic=None, partitions=1))
    assert {at: [r[1] for r in rs] for at, rs in found.items()} == {("a", 0): [b"1", b"3"], ("b", 0): [b"2"]}
    assert list(flat(encoded(columns, topic="t", partitions=1))) == [("t", 0)]


def test_a_row_without_a_topic_is_refused() -> None:
    columns = {"value": pa.array([b"1", b"2"], pa.binary()), "topic": pa.array(["a", None])}
    with pytest.raises(RowRefused, match="a row has no topic"):
        encoded(columns, topic=None)


def test_batches_are_no_larger_than_asked_for_but_for_a_single_large_row() -> None:
    values = [b"x" * 100] * 50 + [b"y" * 5000] + [b"x" * 100] * 50
    [batches] = encoded({"value": pa.array(values, pa.binary())}, partitions=1, batch_bytes=1000).values()
    assert [len(batch) for batch in batches if batch[0][1] != b"y" * 5000] == [7] * 7 + [1] + [7] * 7 + [1]
    assert sum(len(batch) for batch in batches) == 101


def test_a_row_larger_than_a_request_may_be_is_refused_before_it_is_sent() -> None:
    with pytest.raises(RowRefused, match=r"kafka\.max\.request\.size"):
        encoded({"value": pa.array([b"x" * (2 << 20)], pa.binary())})


def test_rows_without_key_take_turns_by_batch() -> None:
    encoder = RowEncoder(EncodeSettings("t", 1_000_000, 1 << 20), Placement(lambda _: 3))
    rows = pa.RecordBatch.from_pydict({"value": pa.array([b"1", b"2"], pa.binary())})
    places = [batch.partition for _ in range(3) for group in encoder.encode(rows) for batch in group]
    assert sorted(places) == [0, 1, 2]


def schema(**types: Any) -> StructType:
    return StructType([StructField(name, each) for name, each in types.items()])


_HEADERS_TYPE = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))


def test_the_columns_of_sparks_connector_are_taken_and_others_left_aside() -> None:
    columns = schema(
        key=StringType(),
        Value=BinaryType(),
        topic=StringType(),
        partition=IntegerType(),
        headers=_HEADERS_TYPE,
        other=LongType(),
    )
    check_columns(columns, None)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (schema(key=StringType(), topic=StringType()), "value: this column is missing"),
        (schema(value=StringType()), "topic: is missing; give the option topic, or a column topic"),
        (schema(value=LongType(), topic=StringType()), "value: this column is bigint; cast it to string"),
        (schema(value=StringType(), key=LongType(), topic=StringType()), "key: this column is bigint"),
        (schema(value=StringType(), topic=BinaryType()), "topic: this column is binary; cast it to string"),
        (schema(value=StringType(), topic=StringType(), partition=LongType()), "cast it to int"),
        (schema(value=StringType(), topic=StringType(), headers=StringType()), "headers: this column is"),
    ],
)
def test_columns_that_cannot_be_written_are_named_with_a_remedy(columns: StructType, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        check_columns(columns, None)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"deliveryGuarantee": "exactly-twice"}, "use exactly-once or at-least-once"),
        ({"kafka.acks": "1"}, "kafka.acks: is not enough for exactly-once"),
        ({"kafka.acks": "0", "deliveryGuarantee": "at-least-once"}, "0 would lose rows"),
        (
            {"kafka.acks": "1", "kafka.enable.idempotence": "true", "deliveryGuarantee": "at-least-once"},
            "all",
        ),
        ({"kafka.compression.type": "rar"}, "kafka.compression.type: 'rar' is not known"),
        ({"kafka.batch.size": "none"}, "kafka.batch.size: 'none' is not a number"),
        ({"writeId": ""}, "writeId: is empty"),
        ({"writeId": "w", "deliveryGuarantee": "at-least-once"}, "of no use with at-least-once"),
        ({"topik": "t"}, "option topik: is not known; did you mean topic?"),
        ({"deliveryGuarante": "at-least-once"}, "did you mean deliveryGuarantee?"),
        ({"acceptLostEpoch": "last"}, "acceptLostEpoch: 'last' is not a number"),
        ({"kafka.key.serializer": "x"}, "kafka.key.serializer: cannot be set"),
        ({"kafka.security.protocol": "SSL"}, "kafka.security.protocol"),
    ],
)
def test_options_that_cannot_be_used_are_named_in_one_line(options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        sink_options({**_BOOTSTRAP, **options}, is_stream=False)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_write_id_is_refused_for_a_stream() -> None:
    with pytest.raises(OptionError, match="writeId"):
        sink_options({**_BOOTSTRAP, "writeId": "w"}, is_stream=True)


def test_a_topic_cannot_be_overwritten() -> None:
    with pytest.raises(OptionError, match=r'mode\("append"\)'):
        make_writer({**_BOOTSTRAP, "topic": "t"}, schema(value=StringType()), overwrite=True)


def test_options_are_read_as_given() -> None:
    chosen = sink_options(
        {
            **_BOOTSTRAP,
            "topic": "t",
            "deliveryguarantee": "At-Least-Once",
            "kafka.acks": "1",
            "kafka.compression.type": "zstd",
            "kafka.compression.zstd.level": "7",
            "kafka.batch.size": "5000",
            "kafka.transaction.timeout.ms": "1000",
            "kafka.request.timeout.ms": "2000",
        },
        is_stream=True,
    )
    assert chosen.guarantee is Guarantee.AT_LEAST_ONCE
    assert (chosen.topic, chosen.writing.acks, chosen.is_idempotent) == ("t", 1, False)
    assert (chosen.codec, chosen.level, chosen.batch_bytes) == (Codec.ZSTD, 7, 5000)
    assert (chosen.transaction_timeout_ms, chosen.client.request_timeout_s) == (1000, 2.0)
