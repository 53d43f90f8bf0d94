"""Options of the source: what they mean, and one clear line for what they cannot mean."""

import pytest

from riverlog.model.ids import TopicPartition
from riverlog.model.network import Address
from riverlog.spark.connection import OptionError
from riverlog.spark.source.java_pattern import topic_matcher
from riverlog.spark.source.options import (
    Assign,
    SourceOptions,
    Subscribe,
    SubscribePattern,
    batch_options,
    stream_options,
)
from riverlog.spark.source.places import AtGroup, AtOffsets, AtTimestamp, AtTimestamps, Earliest, Latest

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}
T0 = TopicPartition("t", 0)


def batch(**options: str) -> SourceOptions:
    return batch_options({**SERVERS, "subscribe": "t", **options})


def stream(**options: str) -> SourceOptions:
    return stream_options({**SERVERS, "subscribe": "t", **options})


def test_a_batch_begins_at_the_earliest_and_a_stream_at_the_latest() -> None:
    assert (batch().starting, batch().ending) == (Earliest(), Latest())
    assert stream().starting == Latest()


def test_names_of_options_are_taken_in_any_case() -> None:
    assert batch(STARTINGOFFSETS="earliest", includeheaders="TRUE").include_headers


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"startingOffsets": "latest"}, Latest()),
        ({"startingOffsets": '{"t": {"0": 7}}'}, AtOffsets({T0: 7})),
        ({"startingOffsets": "group:billing"}, AtGroup("billing")),
        ({"startingTimestamp": "99"}, AtTimestamp(99)),
        ({"startingOffsetsByTimestamp": '{"t": {"0": 5}}'}, AtTimestamps({T0: 5})),
        ({"startingTimestamp": "99", "startingOffsets": "earliest"}, AtTimestamp(99)),
    ],
)
def test_places_to_begin(options: dict[str, str], place: object) -> None:
    assert stream(**options).starting == place


def test_topics_are_selected_by_name_pattern_or_partition() -> None:
    assert batch_options({**SERVERS, "subscribe": "a, b,a"}).selection == Subscribe(("a", "b"))
    assert batch_options({**SERVERS, "subscribePattern": "a.*"}).selection == SubscribePattern("a.*")
    assert batch_options({**SERVERS, "assign": '{"t": [0]}'}).selection == Assign((T0,))


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("orders", ["eu.orders", "orders", "orders-1"]),
        ("^orders$", ["orders"]),
        (r"orders\z", ["eu.orders", "orders"]),
        (r"\Qeu.\E", ["eu.orders"]),
        (r"^(?<first>o)rd\w*-\p{Digit}", ["orders-1"]),
        (r"[\p{Digit}.]", ["eu.orders", "orders-1"]),
        (r"(?i)^ORDERS", ["orders", "orders-1"]),
        (r"^or\P{Upper}*+$", ["orders", "orders-1"]),
    ],
)
def test_a_pattern_is_a_java_pattern_that_is_found_anywhere_in_a_name(pattern: str, found: list[str]) -> None:
    matches = topic_matcher(pattern)
    assert [name for name in ("eu.orders", "orders", "orders-1", "other") if matches(name)] == found


def test_kafka_settings_reach_the_client() -> None:
    options = batch_options(
        {
            "kafka.bootstrap.servers": "one:1,[::1]:2,three",
            "subscribe": "t",
            "kafka.client.id": "me",
            "kafka.request.timeout.ms": "1500",
            "kafka.default.api.timeout.ms": "2500",
            "kafka.isolation.level": "read_committed",
            "kafka.max.partition.fetch.bytes": "1000",
            "kafka.fetch.max.wait.ms": "7",
            "kafka.check.crcs": "false",
        }
    )
    settings = options.connection.settings
    assert settings.bootstrap == (Address("one", 1), Address("::1", 2), Address("three", 9092))
    assert (settings.client_id, settings.request_timeout_s, settings.retry_deadline_s) == ("me", 1.5, 2.5)
    reading = options.reading
    assert (reading.read_committed, reading.partition_bytes, reading.wait_ms) == (True, 1000, 7)
    assert not reading.check_crcs


def test_fetch_max_bytes_bounds_what_is_asked_for() -> None:
    assert batch(**{"kafka.fetch.max.bytes": "5000"}).reading.partition_bytes == 5000


@pytest.mark.parametrize(("text", "seconds"), [("250", 0.25), ("30s", 30), ("2 m", 120), ("1h", 3600)])
def test_a_delay_is_read_with_its_unit(text: str, seconds: float) -> None:
    assert stream(maxTriggerDelay=text).max_trigger_delay_s == seconds


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({}, "subscribe, subscribePattern, assign: none is given"),
        ({"subscribe": "t", "assign": '{"t":[0]}'}, "subscribe and assign are given together"),
        ({"subscribe": " , "}, "option subscribe: names no topic"),
        ({"subscribePattern": "a("}, "option subscribePattern"),
        ({"subscribePattern": "[a-z&&[^b]]"}, "classes inside of classes are not supported"),
        ({"subscribePattern": r"\p{IsGreek}"}, r"\p{IsGreek} is not supported"),
        ({"assign": '{"t": 0}'}, "option assign"),
        ({"subscribe": "t", "startingOffsets": "soon"}, "use earliest, latest, group:NAME or JSON"),
        ({"subscribe": "t", "startingOffsets": '{"t": {"0": -3}}'}, "-3 for t-0 is no offset"),
        ({"subscribe": "t", "startingOffsets": '{"u": {"0": 3}}'}, "topic u is not in subscribe"),
        ({"assign": '{"t": [0]}', "startingOffsets": '{"t": {"1": 3}}'}, "other partitions than assign"),
        ({"subscribe": "t", "startingOffsets": '{"t": {"0": "x"}}'}, "is no position"),
        ({"subscribe": "t", "startingOffsets": '{"t"'}, "is not a JSON object"),
        ({"subscribe": "t", "startingOffsets": "latest"}, "a batch read cannot begin at latest"),
        ({"subscribe": "t", "startingOffsets": '{"t": {"0": -1}}'}, "a batch read cannot begin at latest"),
        ({"subscribe": "t", "endingOffsets": "earliest"}, "a batch read cannot end at earliest"),
        ({"subscribe": "t", "startingTimestamp": "now"}, "startingTimestamp: 'now' is not a number"),
        ({"subscribe": "t", "minPartitions": "0"}, "option minPartitions: 0 is too small"),
        ({"subscribe": "t", "failOnDataLoss": "maybe"}, "neither true nor false"),
        ({"subscribe": "t", "startingOffsetsByTimestampStrategy": "x"}, "use error or latest"),
        ({"subscribe": "t", "startingOfsets": "earliest"}, "did you mean startingOffsets"),
        ({"subscribe": "t", "kafka.auto.offset.reset": "earliest"}, "set startingOffsets"),
        ({"subscribe": "t", "kafka.enable.auto.commit": "true"}, "kafka.enable.auto.commit: cannot be set"),
        ({"subscribe": "t", "kafka.isolation.levl": "x"}, "did you mean kafka.isolation.level?"),
        ({"subscribe": "t", "kafka.key.deserializer": "x"}, "always binary"),
        ({"subscribe": "t", "kafka.security.protocol": "SSL"}, "kafka.security.protocol"),
        ({"subscribe": "t", "kafka.isolation.level": "x"}, "read_uncommitted, read_committed"),
        ({"subscribe": "t", "kafka.bootstrap.servers": ""}, "give the address of a broker"),
        ({"subscribe": "t", "kafka.bootstrap.servers": "here:x"}, "is not an address"),
    ],
)
def test_a_bad_option_is_named_with_what_to_do(options: dict[str, str], complaint: str) -> None:
    with pytest.raises(OptionError) as refused:
        batch_options({**SERVERS, **options})
    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    with pytest.raises(OptionError, match=f"option {name}: a stream has no end"):
        stream(**{name: "1"})


def test_the_least_of_a_batch_is_not_more_than_the_most() -> None:
    with pytest.raises(OptionError, match="minOffsetsPerTrigger"):
        stream(minOffsetsPerTrigger="9", maxOffsetsPerTrigger="8")


def test_settings_without_an_effect_are_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    batch(maxOffsetsPerTrigger="8", **{"kafka.sasl.mechanism": "PLAIN", "kafka.fetch.min.bytes": "1"})
    assert "maxOffsetsPerTrigger has no effect on a batch read" in caplog.text
    assert "kafka.sasl.mechanism has no effect" in caplog.text
    assert "kafka.fetch.min.bytes has no effect" in caplog.text
