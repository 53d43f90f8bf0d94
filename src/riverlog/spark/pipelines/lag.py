"""How many records a flow has yet to read: what the brokers hold beyond its positions."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Final

from riverlog.client.cluster import ClientSettings, Cluster
from riverlog.client.offsets import LATEST, list_offsets
from riverlog.model.errors import RiverlogError
from riverlog.model.ids import TopicPartition
from riverlog.spark.connection import connection_of
from riverlog.spark.pipelines.checkpoints import Positions

FORMAT: Final = "riverlog"
_PATIENCE_S: Final = 3.0
"""A figure for people is not worth waiting for a broker that is away."""


class LagGauge:
    """Asks the brokers of several clusters. Not thread-safe; `close` drops the connections."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._clusters: dict[ClientSettings, Cluster] = {}

    def close(self) -> None:
        self._stack.close()
        self._clusters.clear()

    def lag(self, options: Mapping[str, str], positions: Positions) -> int | None:
        """None if the brokers do not say. Control records count too, as with every Kafka tool."""
        wanted = {
            TopicPartition(topic, partition): offset
            for topic, partitions in positions.items()
            for partition, offset in partitions.items()
        }
        try:
            read_committed = options.get("kafka.isolation.level", "read_committed") == "read_committed"
            ends = list_offsets(
                self._cluster(options), dict.fromkeys(wanted, LATEST), read_committed=read_committed
            )
        except RiverlogError:
            return None
        return sum(max(0, (ends[at] or 0) - offset) for at, offset in wanted.items() if at in ends)

    def _cluster(self, options: Mapping[str, str]) -> Cluster:
        chosen = connection_of(options, [key.removeprefix("kafka.") for key in options]).settings
        settings = ClientSettings(chosen.bootstrap, "riverlog-pipeline", _PATIENCE_S, _PATIENCE_S)
        if settings not in self._clusters:
            self._clusters[settings] = self._stack.enter_context(Cluster(settings))
        return self._clusters[settings]


def total_lag(
    gauge: LagGauge, sources: Sequence[Mapping[str, str] | None], positions: Sequence[Positions]
) -> int | None:
    """Of a flow: over all its sources that are topics; `sources` come from `in_step`."""
    lags = [
        gauge.lag(options, each)
        for options, each in zip(sources, positions, strict=False)
        if options is not None and each
    ]
    return None if not lags or None in lags else sum(lag for lag in lags if lag is not None)


def in_step(
    sources: Sequence[Mapping[str, str]], positions: Sequence[Positions]
) -> list[Mapping[str, str] | None]:
    """The options that belong to each position: the source that names one of its topics, or the only one."""
    return [_owner(sources, each) for each in positions]


def _owner(sources: Sequence[Mapping[str, str]], positions: Positions) -> Mapping[str, str] | None:
    if not positions:
        return None
    for options in sources:
        named = options.get("subscribe", "") + options.get("assign", "")
        if any(topic in named for topic in positions):
            return options
    return sources[0] if sources else None
