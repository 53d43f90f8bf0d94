"""The sources and sinks of a project held against the brokers: options, columns, and topics that are there.

Read-only. A topic that a sink writes may be missing where brokers create topics by themselves.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from riverlog.client.cluster import ClientSettings, Cluster, ClusterUnreachable
from riverlog.model.errors import ErrorCode, RiverlogError
from riverlog.spark.connection import OptionError, is_kafka_key
from riverlog.spark.pipelines.checks.findings import Finding, Place
from riverlog.spark.pipelines.checks.source_lines import place_of_text
from riverlog.spark.pipelines.lag import FORMAT
from riverlog.spark.pipelines.plans import SourceRead
from riverlog.spark.sink.options import check_columns, sink_options
from riverlog.spark.sink.topics import creates_topics
from riverlog.spark.source.options import Assign, SourceOptions, Subscribe, batch_options, stream_options

_SINK_NAMES: Final = ("topic", "deliveryGuarantee", "includeHeaders", "writeId")
_PATIENCE_S: Final = 5.0
_NEAR: Final = 0.6


class TopicChecks:
    """Remembers each cluster that it has asked."""

    def __init__(self) -> None:
        self._topics: dict[tuple[Any, ...], set[str] | str] = {}
        self._creates: dict[tuple[Any, ...], bool] = {}

    def of_source(self, source: SourceRead, near: Place) -> Iterator[Finding]:
        if source.format != FORMAT:
            return
        try:
            options = stream_options(source.options) if source.is_streaming else batch_options(source.options)
        except OptionError as error:
            yield _of_option(error, near, source.options)
            return
        wanted = _named_topics(options)
        yield from self._missing(options.connection.settings, wanted, near, source.options, will_write=False)

    def of_sink(self, options: Mapping[str, str], near: Place) -> Iterator[Finding]:
        names = {name.lower() for name in _SINK_NAMES}
        known = {name: options[name] for name in options if name.lower() in names or is_kafka_key(name)}
        for name in options.keys() - known.keys():
            yield Finding(
                place_of_text(near, [name]),
                f"option {name}: the sink does not know it",
                _nearest(name, _SINK_NAMES),
            )
        try:
            chosen = sink_options(known, is_stream=True)
        except OptionError as error:
            yield _of_option(error, near, options)
            return
        topics = [chosen.topic] if chosen.topic else []
        yield from self._missing(chosen.client, topics, near, options, will_write=True)

    def of_columns(
        self, flow: str, schema: Any, options: Mapping[str, str], near: Place
    ) -> Iterator[Finding]:
        lower = {key.lower(): value for key, value in options.items()}
        try:
            check_columns(schema, lower.get("topic"))
        except OptionError as error:
            name, problem, remedy = _parts(error)
            yield Finding(near, f"flow {flow}: column {name}: {problem}", remedy)

    def _missing(
        self,
        settings: ClientSettings,
        topics: Iterable[str],
        near: Place,
        options: Mapping[str, str],
        *,
        will_write: bool,
    ) -> Iterator[Finding]:
        there = self._topics_of(settings)
        if isinstance(there, str):
            yield Finding(
                place_of_text(near, [options.get("kafka.bootstrap.servers", ""), "kafka.bootstrap.servers"]),
                there,
                "start the broker, or correct kafka.bootstrap.servers",
            )
            return
        for topic in topics:
            if topic in there or (will_write and self._creates_topics(settings)):
                continue
            near_topic = difflib.get_close_matches(topic, there, n=1, cutoff=_NEAR)
            create = f"riverlog topic create {topic}"
            remedy = f"did you mean {near_topic[0]}? or `{create}`" if near_topic else create
            yield Finding(
                place_of_text(near, [topic, *options.values()]), f"topic {topic} does not exist", remedy
            )

    def _topics_of(self, settings: ClientSettings) -> set[str] | str:
        """The topics of a cluster, or why it cannot be asked."""
        if settings.bootstrap not in self._topics:
            try:
                with Cluster(_patient(settings)) as cluster:
                    found = cluster.topics()
                self._topics[settings.bootstrap] = {
                    name for name, view in found.items() if view.error is ErrorCode.NONE
                }
            except ClusterUnreachable as error:
                self._topics[settings.bootstrap] = str(error)
        return self._topics[settings.bootstrap]

    def _creates_topics(self, settings: ClientSettings) -> bool:
        if settings.bootstrap not in self._creates:
            try:
                with Cluster(_patient(settings)) as cluster:
                    self._creates[settings.bootstrap] = creates_topics(cluster)
            except RiverlogError:
                self._creates[settings.bootstrap] = False
        return self._creates[settings.bootstrap]


def _patient(settings: ClientSettings) -> ClientSettings:
    return ClientSettings(settings.bootstrap, settings.client_id, _PATIENCE_S, _PATIENCE_S)


def _named_topics(options: SourceOptions) -> list[str]:
    match options.selection:
        case Subscribe(topics):
            return list(topics)
        case Assign(partitions):
            return sorted({each.topic for each in partitions})
        case _:
            return []


def _of_option(error: OptionError, near: Place, options: Mapping[str, str]) -> Finding:
    name, problem, remedy = _parts(error)
    spelt = next((key for key in options if key.lower() == name.lower()), name)
    place = place_of_text(near, [spelt, options.get(spelt, spelt)])
    return Finding(place, f"option {spelt}: {problem}", remedy)


def _parts(error: OptionError) -> tuple[str, str, str]:
    name, _, rest = str(error).removeprefix("option ").partition(": ")
    problem, _, remedy = rest.rpartition("; ")
    return name, problem, remedy


def _nearest(name: str, known: Iterable[str]) -> str:
    names = list(known)
    near = difflib.get_close_matches(name.lower(), [each.lower() for each in names], n=1, cutoff=_NEAR)
    found = next((each for each in names if near and each.lower() == near[0]), None)
    return f"did you mean {found}?" if found else f"the options are {', '.join(names)} and kafka.*"
