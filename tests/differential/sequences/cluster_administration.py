"""What concerns the whole cluster: ACLs that nobody keeps, levels of features, resources with settings."""

from __future__ import annotations

from typing import Any

from tests.differential.sequences.common import BROKER, CLIENT_METRICS, GROUP, TOPIC, VERSIONS
from tests.differential.steps import Call, Script, Step

Json = Any

_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE = 1, 2, 3


def scripts() -> list[Script]:
    return [
        *(Script("DescribeAcls", f"version {v}", _described(v)) for v in VERSIONS["DescribeAcls"]),
        *(Script("CreateAcls", f"version {v}", _made(v)) for v in VERSIONS["CreateAcls"]),
        *(Script("DeleteAcls", f"version {v}", _removed(v)) for v in VERSIONS["DeleteAcls"]),
        *(Script("UpdateFeatures", f"version {v}", _features(v)) for v in VERSIONS["UpdateFeatures"]),
        *(Script("UpdateFeatures", f"lowered and raised, version {v}", _lowered(v)) for v in (1, 2)),
        *(
            Script("ListConfigResources", f"version {v}", _resources(v), empty_broker=True)
            for v in VERSIONS["ListConfigResources"]
        ),
    ]


def _filter(**fields: Json) -> Json:
    return {
        "resource_type_filter": 1,
        "resource_name_filter": None,
        "pattern_type_filter": 1,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    } | fields


def _described(version: int) -> list[Step]:
    return [
        Call("DescribeAcls", version, _filter()),
        Call("DescribeAcls", version, _filter(resource_type_filter=2, resource_name_filter="a topic")),
        Call("DescribeAcls", version, _filter(resource_type_filter=99)),
        Call("DescribeAcls", version, _filter(pattern_type_filter=0)),
        Call("DescribeAcls", version, _filter(operation=0)),
        Call("DescribeAcls", version, _filter(permission_type=77)),
        Call("DescribeAcls", version, _filter(permission_type=0)),
        Call("DescribeAcls", version, _filter(resource_type_filter=0)),
    ]


def _acl(**fields: Json) -> Json:
    return {
        "resource_type": 2,
        "resource_name": "a topic",
        "resource_pattern_type": 3,
        "principal": "User:somebody",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    } | fields


def _made(version: int) -> list[Step]:
    return [
        Call("CreateAcls", version, {"creations": [_acl()]}),
        Call("CreateAcls", version, {"creations": [_acl(), _acl(operation=4)]}),
        Call("CreateAcls", version, {"creations": [_acl(principal="nobody")]}),
        Call("CreateAcls", version, {"creations": [_acl(resource_type=99)]}),
        Call("CreateAcls", version, {"creations": [_acl(resource_pattern_type=1)]}),
        Call("CreateAcls", version, {"creations": [_acl(operation=0)]}),
        Call("CreateAcls", version, {"creations": [_acl(), _acl(permission_type=0)]}),
        Call("CreateAcls", version, {"creations": [_acl(resource_type=0)]}),
        Call("CreateAcls", version, {"creations": [_acl(resource_pattern_type=0)]}),
        Call("CreateAcls", version, {"creations": []}),
    ]


def _removed(version: int) -> list[Step]:
    return [
        Call("DeleteAcls", version, {"filters": [_filter()]}),
        Call("DeleteAcls", version, {"filters": [_filter(), _filter(resource_type_filter=2)]}),
        Call("DeleteAcls", version, {"filters": [_filter(resource_type_filter=99)]}),
        Call("DeleteAcls", version, {"filters": [_filter(operation=0)]}),
        Call("DeleteAcls", version, {"filters": [_filter(), _filter(permission_type=0)]}),
        Call("DeleteAcls", version, {"filters": [_filter(resource_type_filter=0)]}),
        Call("DeleteAcls", version, {"filters": [_filter(pattern_type_filter=0)]}),
        Call("DeleteAcls", version, {"filters": []}),
    ]


def _updated(version: int, *updates: Json, **fields: Json) -> Call:
    return Call("UpdateFeatures", version, {"feature_updates": list(updates), "timeout_ms": 10000} | fields)


def _level(feature: str, level: int, kind: int = _UPGRADE, allow_downgrade: bool = False) -> Json:
    return {
        "feature": feature,
        "max_version_level": level,
        "upgrade_type": kind,
        "allow_downgrade": allow_downgrade,
    }


def _features(version: int) -> list[Step]:
    """Only what changes nothing: levels that are in force, those that are refused, and trials."""
    steps: list[Step] = [
        _updated(version),
        _updated(version, _level("transaction.version", 2)),
        _updated(version, _level("group.version", 1)),
        _updated(version, _level("group.version", 1), _level("transaction.version", 2)),
        _updated(version, _level("transaction.version", 3)),
        _updated(version, _level("transaction.version", -1)),
        _updated(version, _level("group.version", 2)),
        _updated(version, _level("group.version", 0)),
        _updated(version, _level("transaction.version", 1)),
        _updated(version, _level("transaction.version", 1), _level("group.version", 1)),
        _updated(version, _level("no.such.feature", 1)),
        _updated(version, _level("no.such.feature", 0, _SAFE_DOWNGRADE, True)),
        _updated(version, _level("no.such.feature", 1), _level("transaction.version", 3)),
        _updated(version, _level("", 1)),
        _updated(version, _level("group.version", 1), _level("group.version", 1)),
        _updated(version, _level("transaction.version", 2), timeout_ms=0),
        # Version 0 can say that lowering is meant, and Kafka takes no notice of it.
        _updated(version, _level("transaction.version", 1, allow_downgrade=True)),
    ]
    if version >= 1:
        trial = {"validate_only": True}
        steps += [
            _updated(version, _level("transaction.version", 2), **trial),
            _updated(version, _level("transaction.version", 3), **trial),
            _updated(version, _level("transaction.version", 1), **trial),
            _updated(version, _level("transaction.version", 3, _SAFE_DOWNGRADE), **trial),
            _updated(version, _level("transaction.version", 2, _SAFE_DOWNGRADE), **trial),
            _updated(version, _level("transaction.version", 2, _UNSAFE_DOWNGRADE), **trial),
            _updated(version, _level("transaction.version", 2, 0), **trial),
            _updated(version, _level("transaction.version", 2, 9), **trial),
            _updated(version, _level("no.such.feature", 1), **trial),
        ]
    return steps


def _lowered(version: int) -> list[Step]:
    """What is lowered is raised again, for the sequences that follow."""
    group = {"group_id": "", "member_id": "m", "member_epoch": 0}
    transactions, groups = "transaction.version", "group.version"
    return [
        _updated(version, _level(transactions, 1, _SAFE_DOWNGRADE)),
        _updated(version, _level(transactions, 2, _SAFE_DOWNGRADE)),
        _updated(version, _level(transactions, 0, _UNSAFE_DOWNGRADE)),
        _updated(version, _level(transactions, 0, _UPGRADE)),
        _updated(version, _level(transactions, 0, _SAFE_DOWNGRADE)),
        _updated(version, _level(transactions, 1), _level(groups, 5)),
        _updated(version, _level(transactions, 1), _level(transactions, 2)),
        _updated(version, _level(transactions, 1), _level(groups, 0)),
        _updated(version, _level(groups, 0, _SAFE_DOWNGRADE)),
        Call("ConsumerGroupHeartbeat", 1, group, until={"error_code": "UNSUPPORTED_VERSION"}),
        Call("ConsumerGroupDescribe", 1, {"group_ids": ["no-such-group"]}),
        _updated(version, _level(groups, 1)),
        Call("ConsumerGroupHeartbeat", 1, group, until={"error_code": "INVALID_REQUEST"}),
    ]


def _resources(version: int) -> list[Step]:
    """On a broker that no other sequence has given settings to."""
    if version == 0:
        return [Call("ListConfigResources", 0, {})]
    interval = [{"name": "consumer.session.timeout.ms", "config_operation": 0, "value": "50000"}]

    def altered(kind: int, named: str, configs: Json) -> Call:
        resource = {"resource_type": kind, "resource_name": named, "configs": configs}
        return Call("IncrementalAlterConfigs", 1, {"resources": [resource]})

    def asked(*kinds: int) -> Call:
        return Call("ListConfigResources", version, {"resource_types": list(kinds)})

    return [
        altered(GROUP, "resource-group", interval),
        asked(GROUP),
        asked(CLIENT_METRICS),
        asked(BROKER),
        asked(8),
        asked(BROKER, 8),
        asked(TOPIC),
        asked(1),
        asked(0),
        asked(99),
        asked(GROUP, 99),
        asked(GROUP, GROUP),
        altered(GROUP, "resource-group", [{**interval[0], "config_operation": 1, "value": None}]),
        asked(GROUP),
    ]
