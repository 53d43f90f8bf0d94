"""What the configuration says about a group of the consumer protocol: its own settings first."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from riverlog.metadata.image import NO_CONFIG, ClusterImage, ConfigResource, ResourceType
from riverlog.model.config.group_config import GroupConfig

_ASSIGNMENT_INTERVAL: Final = "group.consumer.assignment.interval.ms"
"""The one of these that can be changed for all groups while the broker runs."""


class GroupRules(NamedTuple):
    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int


def rules_for(group_id: str, config: GroupConfig, image: ClusterImage) -> GroupRules:
    own = image.configs.get(ConfigResource(ResourceType.GROUP, group_id), NO_CONFIG)
    interval_ms = _number(
        image.broker_config(None), _ASSIGNMENT_INTERVAL, config.consumer_assignment_interval_ms
    )
    return GroupRules(
        _number(own, "consumer.session.timeout.ms", config.consumer_session_timeout_ms),
        _number(own, "consumer.heartbeat.interval.ms", config.consumer_heartbeat_interval_ms),
        _number(own, "consumer.assignment.interval.ms", interval_ms),
    )


def _number(own: Mapping[str, str], name: str, otherwise: int) -> int:
    return int(own[name]) if name in own else otherwise
