"""What the settings amount to now: those of the start, with what was altered in the cluster since."""

from collections.abc import Mapping
from typing import Final

from riverlog.metadata.image import ClusterImage
from riverlog.model.config.alter import AlterationRefused, check_topic
from riverlog.model.config.cleaner_config import CleanerConfig
from riverlog.model.config.effective import BrokerLayers
from riverlog.model.config.settings import Settings
from riverlog.model.config.slices import LogConfig, ServerConfig
from riverlog.model.ids import NodeId

_MOVE_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"


class LiveConfig:
    """The base for all topics is computed when a broker setting changes, not for each topic."""

    def __init__(self, settings: Settings, node_id: NodeId) -> None:
        self._settings = settings
        self._node_id = node_id
        self._altered: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {})
        self._for_all_topics = LogConfig.from_settings(settings)

    def layers(self, image: ClusterImage) -> BrokerLayers:
        dynamic_default, dynamic_broker = self._altered_in(image)
        return BrokerLayers(self._settings.static, dynamic_default, dynamic_broker)

    def log_config(self, image: ClusterImage, topic: str) -> LogConfig:
        altered = self._altered_in(image)
        if altered != self._altered:
            self._altered = altered
            self._for_all_topics = LogConfig.from_settings(
                self._settings, dynamic_default=altered[0], dynamic_broker=altered[1]
            )
        return self._for_all_topics.with_overrides(image.topic_config(topic))

    def server_config(self, image: ClusterImage) -> ServerConfig:
        dynamic_default, dynamic_broker = self._altered_in(image)
        return ServerConfig.from_settings(
            self._settings, dynamic_default=dynamic_default, dynamic_broker=dynamic_broker
        )

    def cleaner_config(self, image: ClusterImage) -> CleanerConfig:
        dynamic_default, dynamic_broker = self._altered_in(image)
        return CleanerConfig.from_settings(
            self._settings, dynamic_default=dynamic_default, dynamic_broker=dynamic_broker
        )

    def move_bytes_per_second_max(self, image: ClusterImage) -> float:
        """How fast logs may be copied to another data directory."""
        dynamic_default, dynamic_broker = self._altered_in(image)
        return float({**dynamic_default, **dynamic_broker}.get(_MOVE_RATE, "inf"))

    def topic_problem(self, image: ClusterImage, overrides: Mapping[str, str]) -> str | None:
        """Why a topic cannot have these settings of its own."""
        outcome = check_topic(overrides, self.layers(image))
        return outcome.message if isinstance(outcome, AlterationRefused) else None

    def _altered_in(self, image: ClusterImage) -> tuple[Mapping[str, str], Mapping[str, str]]:
        return image.broker_config(None), image.broker_config(self._node_id)
