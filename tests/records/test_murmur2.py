"""Keys go where the Java client puts them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as murmur2_of_kafka_python  # type: ignore[import-untyped]

from riverlog.records.murmur2 import murmur2, partition_for_key


@pytest.mark.parametrize(
    ("key", "java_hash"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_hash_is_that_of_the_java_client(key: bytes, java_hash: int) -> None:
    assert murmur2(key) == java_hash
    assert murmur2(memoryview(bytearray(key))) == java_hash


@given(key=st.binary(max_size=100))
def test_the_hash_is_that_of_another_implementation(key: bytes) -> None:
    assert murmur2(key) & 0xFFFFFFFF == murmur2_of_kafka_python(key)


def test_a_key_of_negative_hash_has_a_partition_too() -> None:
    assert partition_for_key(b"21", 12) == (-973932308 & 0x7FFFFFFF) % 12
