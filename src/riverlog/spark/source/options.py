"""All options of the source, as Spark's Kafka connector names them, read into values and checked.

Pure. What is wrong is an `OptionError` of one line that names the option and what to do. The same options
serve a batch read and a stream; each of the two refuses or warns about what only the other one knows.
"""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from riverlog.client.reading import ReadSettings
from riverlog.model.ids import TopicPartition
from riverlog.spark.connection import (
    Connection,
    OptionError,
    check_names,
    connection_of,
    true_or_false,
    whole_number,
)
from riverlog.spark.source.java_pattern import PatternError, topic_matcher
from riverlog.spark.source.places import (
    EARLIEST_NUMBER,
    LATEST_NUMBER,
    AtGroup,
    AtOffsets,
    AtTimestamp,
    AtTimestamps,
    Earliest,
    Latest,
    Place,
    numbers_by_partition,
    partitions_of,
)

FETCH_BYTES_MAX: Final = 50 * 1024 * 1024
"""Two of these are in memory at once."""
DEFAULT_GROUP_PREFIX: Final = "riverlog-spark"
_KAFKA_KEYS: Final = frozenset(
    {
        "group.id",
        "isolation.level",
        "max.partition.fetch.bytes",
        "fetch.max.bytes",
        "fetch.max.wait.ms",
        "check.crcs",
    }
)
_NAMES: Final = (
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "startingOffsetsByTimestamp",
    "endingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "failOnDataLoss",
    "includeHeaders",
    "groupIdPrefix",
)
_ENDING: Final = ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")
_TRIGGER: Final = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
_GROUP: Final = "group:"
_DELAY: Final = re.compile(r"\s*(\d+)\s*(ms|s|m|min|h|d)?\s*")
_DELAY_UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Subscribe:
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SubscribePattern:
    pattern: str


@dataclass(frozen=True, slots=True)
class Assign:
    partitions: tuple[TopicPartition, ...]


Selection = Subscribe | SubscribePattern | Assign


@dataclass(frozen=True, slots=True)
class SourceOptions:
    connection: Connection
    reading: ReadSettings
    selection: Selection
    starting: Place
    ending: Place
    latest_when_no_later_record: bool
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_s: float
    min_partitions: int | None
    max_records_per_partition: int | None
    fail_on_data_loss: bool
    include_headers: bool
    group_prefix: str

    @property
    def group_id(self) -> str | None:
        return self.connection.properties.get("group.id")


def batch_options(given: Mapping[str, str]) -> SourceOptions:
    text = _Given(given)
    for name in _TRIGGER:
        if text.get(name) is not None:
            _log.warning("option %s has no effect on a batch read", name)
    options = _options(text, Earliest())
    if isinstance(options.starting, Latest) or _has_number(options.starting, LATEST_NUMBER):
        raise OptionError(
            "startingOffsets", "a batch read cannot begin at latest", "use earliest or an offset"
        )
    if isinstance(options.ending, Earliest) or _has_number(options.ending, EARLIEST_NUMBER):
        raise OptionError("endingOffsets", "a batch read cannot end at earliest", "use latest or an offset")
    return options


def stream_options(given: Mapping[str, str]) -> SourceOptions:
    text = _Given(given)
    for name in _ENDING:
        if text.get(name) is not None:
            raise OptionError(name, "a stream has no end", "leave it out, or use spark.read for a batch")
    options = _options(text, Latest())
    least, most = options.min_offsets_per_trigger, options.max_offsets_per_trigger
    if least is not None and most is not None and least > most:
        raise OptionError(
            "minOffsetsPerTrigger", f"{least} is more than maxOffsetsPerTrigger, {most}", "make it smaller"
        )
    return options


def includes_headers(given: Mapping[str, str]) -> bool:
    """Enough for the schema; checks what a batch read and a stream have in common."""
    return _options(_Given(given), Earliest()).include_headers


class _Given:
    """The options as given, whatever the case of their names."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self.all = {name.lower(): value for name, value in given.items()}
        check_names(self.all, _NAMES, "source")

    def get(self, name: str) -> str | None:
        return self.all.get(name.lower())

    def number(self, name: str, minimum: int = 1) -> int | None:
        text = self.get(name)
        return None if text is None else whole_number(name, text, minimum)

    def flag(self, name: str, default: bool) -> bool:
        text = self.get(name)
        return default if text is None else true_or_false(name, text)


def _options(given: _Given, starting: Place) -> SourceOptions:
    connection = connection_of(given.all, _KAFKA_KEYS)
    selection = _selection(given)
    group_prefix = given.get("groupIdPrefix")
    if group_prefix is not None and "group.id" in connection.properties:
        _log.warning("option groupIdPrefix has no effect beside kafka.group.id")
    return SourceOptions(
        connection=connection,
        reading=_reading(connection),
        selection=selection,
        starting=_place(given, "starting", selection) or starting,
        ending=_place(given, "ending", selection) or Latest(),
        latest_when_no_later_record=_strategy(given) == "latest",
        max_offsets_per_trigger=given.number("maxOffsetsPerTrigger"),
        min_offsets_per_trigger=given.number("minOffsetsPerTrigger"),
        max_trigger_delay_s=_delay_s(given.get("maxTriggerDelay") or "15m"),
        min_partitions=given.number("minPartitions"),
        max_records_per_partition=given.number("maxRecordsPerPartition"),
        fail_on_data_loss=given.flag("failOnDataLoss", True),
        include_headers=given.flag("includeHeaders", False),
        group_prefix=group_prefix or DEFAULT_GROUP_PREFIX,
    )


def _reading(connection: Connection) -> ReadSettings:
    default = ReadSettings()
    isolation = connection.text("isolation.level", "read_uncommitted", ["read_uncommitted", "read_committed"])
    asked = connection.number("max.partition.fetch.bytes", default.partition_bytes, 1)
    most = connection.number("fetch.max.bytes", FETCH_BYTES_MAX, 1)
    return ReadSettings(
        read_committed=isolation == "read_committed",
        partition_bytes=min(asked, most, FETCH_BYTES_MAX),
        wait_ms=connection.number("fetch.max.wait.ms", default.wait_ms, 1),
        check_crcs=connection.flag("check.crcs", True),
    )


def _selection(given: _Given) -> Selection:
    ways = ("subscribe", "subscribePattern", "assign")
    chosen = [way for way in ways if given.get(way) is not None]
    if len(chosen) != 1:
        problem = "none is given" if not chosen else f"{' and '.join(chosen)} are given together"
        raise OptionError("subscribe, subscribePattern, assign", problem, "give exactly one of them")
    text = given.get(chosen[0]) or ""
    match chosen[0]:
        case "subscribe":
            return _subscribe(text)
        case "subscribePattern":
            return _subscribe_pattern(text)
        case _:
            return Assign(partitions_of("assign", text))


def _subscribe(text: str) -> Subscribe:
    topics = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not topics:
        raise OptionError("subscribe", "names no topic", "give topics separated by commas")
    return Subscribe(topics)


def _subscribe_pattern(text: str) -> SubscribePattern:
    try:
        topic_matcher(text)
    except PatternError as error:
        raise OptionError("subscribePattern", f"{text!r} is no pattern: {error}", "correct it") from None
    if not text.strip():
        raise OptionError("subscribePattern", "is empty", "give a regular expression for topic names")
    return SubscribePattern(text)


def _place(given: _Given, side: str, selection: Selection) -> Place | None:
    """The more exact way comes first, as in Spark's connector: one time, times by partition, offsets."""
    timestamp = given.number(f"{side}Timestamp", 0)
    if timestamp is not None:
        return AtTimestamp(timestamp)
    option = f"{side}OffsetsByTimestamp"
    by_timestamp = given.get(option)
    if by_timestamp is not None:
        timestamps = numbers_by_partition(option, by_timestamp)
        _check_selected(option, timestamps, selection)
        return AtTimestamps(timestamps)
    option = f"{side}Offsets"
    text = given.get(option)
    return None if text is None else _offsets(option, text.strip(), selection)


def _offsets(option: str, text: str, selection: Selection) -> Place:
    if text.lower() == "earliest":
        return Earliest()
    if text.lower() == "latest":
        return Latest()
    if text.lower().startswith(_GROUP) and len(text) > len(_GROUP):
        return AtGroup(text[len(_GROUP) :])
    if not text.startswith("{"):
        raise OptionError(option, f"{text!r} is not known", "use earliest, latest, group:NAME or JSON")
    offsets = numbers_by_partition(option, text)
    for at, offset in offsets.items():
        if offset < EARLIEST_NUMBER:
            raise OptionError(option, f"{offset} for {at} is no offset", "use -2 for earliest, -1 for latest")
    _check_selected(option, offsets, selection)
    return AtOffsets(offsets)


def _check_selected(option: str, numbers: Mapping[TopicPartition, int], selection: Selection) -> None:
    match selection:
        case Assign(partitions) if set(partitions) != set(numbers):
            raise OptionError(option, "names other partitions than assign does", "name the same ones")
        case Subscribe(topics) if strange := {at.topic for at in numbers} - set(topics):
            raise OptionError(option, f"topic {min(strange)} is not in subscribe", "name the same topics")
        case _:
            pass


def _has_number(place: Place, number: int) -> bool:
    return isinstance(place, AtOffsets) and number in place.offsets.values()


def _strategy(given: _Given) -> str:
    option = "startingOffsetsByTimestampStrategy"
    text = (given.get(option) or "error").lower()
    if text not in ("error", "latest"):
        raise OptionError(option, f"{text!r} is not known", "use error or latest")
    return text


def _delay_s(text: str) -> float:
    matched = _DELAY.fullmatch(text.lower())
    if matched is None:
        raise OptionError("maxTriggerDelay", f"{text!r} is not a duration", "write it as in 30s or 15m")
    return int(matched[1]) * _DELAY_UNITS_MS[matched[2] or "ms"] / 1000
