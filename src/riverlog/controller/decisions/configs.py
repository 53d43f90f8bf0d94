"""Decisions about altered settings: of topics, brokers, groups and client metrics. Pure.

What a setting may be is known to `riverlog.model.config`; here is which resource is meant, and whether it is
there. Checks come in Kafka's order, since only the first that fails is answered.
"""

import re
from collections.abc import Mapping, Sequence
from typing import assert_never

from riverlog.controller.decisions import names
from riverlog.controller.decisions.refusals import Refusal
from riverlog.metadata.image import NO_CONFIG, ClusterImage, ConfigResource, ResourceType
from riverlog.model.config import alter
from riverlog.model.config.effective import BrokerLayers
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId


def decide_resource(kind: int, name: str, node_id: NodeId | None) -> ConfigResource | Refusal:
    """What a request means that names a kind and a name. `node_id` is the broker that was asked; `None` where
    it has been looked at by that broker already."""
    try:
        resource = ConfigResource(ResourceType(kind), name)
    except ValueError:
        return _invalid(f"There is no resource type {kind}.")
    match resource.type:
        case ResourceType.BROKER if name:
            refusal = refuse_broker(name, node_id)
            return refusal or ConfigResource(ResourceType.BROKER, str(int(name)))
        case ResourceType.BROKER_LOGGER:
            return refuse_broker(name, node_id) or resource
        case _:
            return resource


def refuse_broker(name: str, node_id: NodeId | None) -> Refusal | None:
    """Settings of a broker are the business of that broker, which its number names."""
    if re.fullmatch(r"[+-]?[0-9]+", name) is None:
        return _invalid(f"The name of a broker is its node id, not '{name}'.")
    if node_id is not None and int(name) != node_id:
        return _invalid(f"This is broker {node_id}; the request is for broker {int(name)}.")
    return None


def decide_config(
    image: ClusterImage,
    resource: ConfigResource,
    changes: Sequence[alter.Change],
    layers: BrokerLayers,
    *,
    replaces: bool,
) -> Mapping[str, str] | Refusal:
    """The settings of the resource after the changes; with `replaces` those it had do not count."""
    current = NO_CONFIG if replaces else image.configs.get(resource, NO_CONFIG)
    match resource.type:
        case ResourceType.TOPIC:
            return _decide_topic(image, resource.name, current, changes, layers)
        case ResourceType.BROKER:
            return _outcome(alter.alter_broker(current, changes, layers, is_default=not resource.name))
        case ResourceType.GROUP:
            if not resource.name:
                return _invalid("Settings for all groups at once are not possible; name a group.")
            return _outcome(alter.alter_group(current, changes, layers))
        case ResourceType.CLIENT_METRICS:
            if not resource.name:
                return _invalid("A client metrics subscription needs a name.")
            return _outcome(alter.alter_client_metrics(current, changes))
        case ResourceType.BROKER_LOGGER:
            return _invalid("Log levels are no settings that are kept.")
        case other:
            assert_never(other)


def _decide_topic(
    image: ClusterImage,
    name: str,
    current: Mapping[str, str],
    changes: Sequence[alter.Change],
    layers: BrokerLayers,
) -> Mapping[str, str] | Refusal:
    if not name:
        return _invalid("Settings for all topics at once are not possible; name a topic.")
    if problem := names.problem_with(name):
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    outcome = _outcome(alter.alter_topic(current, changes, layers))
    if not isinstance(outcome, Refusal) and name not in image.topics:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{name}'.")
    return outcome


def _outcome(altered: alter.Altered | alter.AlterationRefused) -> Mapping[str, str] | Refusal:
    if isinstance(altered, alter.AlterationRefused):
        return Refusal(altered.error, altered.message)
    return altered.overrides


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, message)
