"""What stands inside the nodes of the metadata store: JSON in the shape that Apache Kafka wrote to ZooKeeper.

Pure conversions between bytes and values. Unknown fields are ignored on reading, as Kafka does.
"""

import base64
import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from riverlog.metadata.export import HOW_TO_RESTORE
from riverlog.model.errors import FormatError
from riverlog.model.ids import BrokerEpoch, LeaderEpoch, NodeId, TopicId
from riverlog.model.log_end import NO_LOG_ENDS, LogEnd, LogEnds
from riverlog.model.network import Address


def uuid_text(value: UUID) -> str:
    """Kafka's spelling of a UUID: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


def parse_uuid(text: str) -> UUID:
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))


def parse_topic_id(text: str) -> TopicId:
    return TopicId(parse_uuid(text))


NOTHING_OFFLINE: Mapping[TopicId, tuple[int, ...]] = {}


class TopicNode(NamedTuple):
    topic_id: TopicId
    replicas: tuple[tuple[NodeId, ...], ...]
    """Of each partition, by its index."""


class PartitionNode(NamedTuple):
    leader: NodeId | None
    leader_epoch: LeaderEpoch
    isr: tuple[NodeId, ...]
    controller_epoch: int
    leader_broker_epoch: BrokerEpoch | None = None
    """Of the leader's registration, where there are several brokers; a field that Kafka does not know."""
    elr: tuple[NodeId, ...] = ()
    """This and what follows are as in `PartitionImage`, unknown to Kafka, and written when set."""
    last_known_elr: tuple[NodeId, ...] = ()
    unclean_epoch: LeaderEpoch | None = None
    log_epoch: LeaderEpoch | None = None


class BrokerNode(NamedTuple):
    endpoints: Mapping[str, Address]
    security: Mapping[str, str]
    rack: str | None
    epoch: BrokerEpoch | None = None
    """Rises with each registration. None where Apache Kafka has written it."""
    host: str | None = None
    """The machine it runs on."""
    is_shutting_down: bool = False
    offline: Mapping[TopicId, tuple[int, ...]] = NOTHING_OFFLINE
    """Partitions whose directory has failed there, by topic id, ascending."""
    log_ends: LogEnds = NO_LOG_ENDS


class RegistrationNode(NamedTuple):
    """What the cluster knows of a broker also while it is away."""

    directories: tuple[UUID, ...]
    boot_id: str
    """Of the kernel: the same until the machine is started anew."""
    host: str
    address: str
    """For people."""
    format: int
    oldest_format: int
    """That it can be in one cluster with."""
    features: Mapping[str, int]
    """The highest levels it knows."""
    endpoints: Mapping[str, Address] = {}
    """Where it is to be found when it is there, by listener name."""
    rack: str | None = None


def encode_topic(node: TopicNode) -> bytes:
    return _encode(
        {
            "version": 3,
            "topic_id": uuid_text(node.topic_id),
            "partitions": {str(index): list(replicas) for index, replicas in enumerate(node.replicas)},
            "adding_replicas": {},
            "removing_replicas": {},
        }
    )


def decode_topic(path: str, data: bytes) -> TopicNode:
    fields = _decode(path, data)
    try:
        assigned: dict[str, list[NodeId]] = fields["partitions"]
        shared: dict[tuple[NodeId, ...], tuple[NodeId, ...]] = {}
        replicas = [tuple(assigned[str(index)]) for index in range(len(assigned))]
        return TopicNode(
            parse_topic_id(fields["topic_id"]), tuple([shared.setdefault(r, r) for r in replicas])
        )
    except (KeyError, TypeError, ValueError) as error:
        raise _malformed(path, error) from error


def encode_deleted_topic(name: str, now_ms: int) -> bytes:
    return _encode({"version": 1, "topic": name, "timestamp": str(now_ms)})


def decode_deletion_ms(path: str, data: bytes) -> int | None:
    """When the topic was deleted; None where an older release has not told."""
    told = _decode(path, data).get("timestamp")
    try:
        return None if told is None else int(told)
    except (TypeError, ValueError) as error:
        raise _malformed(path, error) from error


def encode_partition(node: PartitionNode) -> bytes:
    fields: dict[str, object] = {
        "controller_epoch": node.controller_epoch,
        "leader": -1 if node.leader is None else node.leader,
        "version": 1,
        "leader_epoch": node.leader_epoch,
        "isr": list(node.isr),
    }
    if node.leader_broker_epoch is not None:
        fields["leader_broker_epoch"] = node.leader_broker_epoch
    if node.elr:
        fields["elr"] = list(node.elr)
    if node.last_known_elr:
        fields["last_known_elr"] = list(node.last_known_elr)
    if node.unclean_epoch is not None:
        fields["unclean_epoch"] = node.unclean_epoch
    if node.log_epoch is not None:
        fields["log_epoch"] = node.log_epoch
    return _encode(fields)


def decode_partition(path: str, data: bytes) -> PartitionNode:
    fields = _decode(path, data)
    try:
        leader = fields["leader"]
        return PartitionNode(
            NodeId(leader) if leader >= 0 else None,
            fields["leader_epoch"],
            tuple(map(NodeId, fields["isr"])),
            fields["controller_epoch"],
            fields.get("leader_broker_epoch"),
            tuple(map(NodeId, fields.get("elr", ()))),
            tuple(map(NodeId, fields.get("last_known_elr", ()))),
            fields.get("unclean_epoch"),
            fields.get("log_epoch"),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise _malformed(path, error) from error


def encode_broker(node: BrokerNode, timestamp_ms: int) -> bytes:
    first = next(iter(node.endpoints.values()), Address("", -1))
    fields: dict[str, Any] = {
        "version": 5,
        "host": first.host,
        "port": first.port,
        "jmx_port": -1,
        "timestamp": str(timestamp_ms),
        "endpoints": [f"{name}://{address}" for name, address in node.endpoints.items()],
        "listener_security_protocol_map": dict(node.security),
        "features": {},
    }
    if node.rack is not None:
        fields["rack"] = node.rack
    if node.epoch is not None:
        ours = fields["riverlog"] = {"epoch": node.epoch, "host": node.host}
        if node.is_shutting_down:
            ours["shutting_down"] = True
        if node.offline:
            ours["offline"] = {uuid_text(topic): list(indexes) for topic, indexes in node.offline.items()}
        if node.log_ends:
            ours["log_ends"] = _encode_log_ends(node.log_ends)
    return _encode(fields)


def decode_broker(path: str, data: bytes) -> BrokerNode:
    fields = _decode(path, data)
    try:
        ours = fields.get("riverlog", {})
        return BrokerNode(
            dict(_endpoint(text) for text in fields["endpoints"]),
            dict(fields.get("listener_security_protocol_map", {})),
            fields.get("rack"),
            ours.get("epoch"),
            ours.get("host"),
            ours.get("shutting_down", False),
            {parse_topic_id(topic): tuple(indexes) for topic, indexes in ours.get("offline", {}).items()},
            _decode_log_ends(ours.get("log_ends", {})),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _malformed(path, error) from error


def _encode_log_ends(log_ends: LogEnds) -> dict[str, list[list[int]]]:
    found: dict[str, list[list[int]]] = {}
    for (topic_id, index), end in log_ends.items():
        found.setdefault(uuid_text(topic_id), []).append([index, *end])
    return found


def _decode_log_ends(fields: Mapping[str, list[list[int]]]) -> LogEnds:
    return {
        (parse_topic_id(topic), index): LogEnd(LeaderEpoch(epoch), offset)
        for topic, ends in fields.items()
        for index, epoch, offset in ends
    }


def encode_registration(node: RegistrationNode) -> bytes:
    return _encode(
        {
            "version": 1,
            "directories": [uuid_text(each) for each in node.directories],
            "boot_id": node.boot_id,
            "host": node.host,
            "address": node.address,
            "format": node.format,
            "oldest_format": node.oldest_format,
            "features": dict(node.features),
            "endpoints": [f"{name}://{address}" for name, address in node.endpoints.items()],
            "rack": node.rack,
        }
    )


def decode_registration(path: str, data: bytes) -> RegistrationNode:
    fields = _decode(path, data)
    try:
        return RegistrationNode(
            tuple(map(parse_uuid, fields["directories"])),
            str(fields["boot_id"]),
            str(fields["host"]),
            str(fields["address"]),
            int(fields["format"]),
            int(fields["oldest_format"]),
            {str(name): int(level) for name, level in fields["features"].items()},
            dict(_endpoint(text) for text in fields.get("endpoints", ())),
            fields.get("rack"),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _malformed(path, error) from error


def _endpoint(text: str) -> tuple[str, Address]:
    name, _, address = text.partition("://")
    host, _, port = address.rpartition(":")
    return name, Address(host.removeprefix("[").removesuffix("]"), int(port))


def encode_config(values: Mapping[str, str]) -> bytes:
    return _encode({"version": 1, "config": dict(values)})


def decode_config(path: str, data: bytes) -> dict[str, str]:
    try:
        return dict(_decode(path, data).get("config", {}))
    except (TypeError, ValueError) as error:
        raise _malformed(path, error) from error


def encode_controller(node_id: int, timestamp_ms: int) -> bytes:
    return _encode(
        {"version": 2, "brokerid": node_id, "timestamp": str(timestamp_ms), "kraftControllerEpoch": -1}
    )


def decode_controller(path: str, data: bytes) -> NodeId:
    try:
        return NodeId(int(_decode(path, data)["brokerid"]))
    except (KeyError, TypeError, ValueError) as error:
        raise _malformed(path, error) from error


def encode_features(levels: Mapping[str, int]) -> bytes:
    return _encode({"version": 2, "status": 1, "features": dict(levels)})


def decode_features(path: str, data: bytes) -> Mapping[str, int]:
    try:
        return {str(name): int(level) for name, level in _decode(path, data)["features"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _malformed(path, error) from error


def encode_cluster_id(cluster_id: str) -> bytes:
    return _encode({"version": "1", "id": cluster_id})


def decode_cluster_id(path: str, data: bytes) -> str:
    try:
        return str(_decode(path, data)["id"])
    except (KeyError, TypeError) as error:
        raise _malformed(path, error) from error


def encode_producer_ids(node_id: int, first: int, last: int) -> bytes:
    return _encode({"version": 1, "broker": node_id, "block_start": str(first), "block_end": str(last)})


def decode_producer_ids(path: str, data: bytes) -> tuple[int, int]:
    """The first and the last id of the block that was given out most recently."""
    fields = _decode(path, data)
    try:
        return int(fields["block_start"]), int(fields["block_end"])
    except (KeyError, TypeError, ValueError) as error:
        raise _malformed(path, error) from error


def _encode(fields: Mapping[str, object]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()


def _decode(path: str, data: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(data)
    except ValueError as error:
        raise _malformed(path, error) from error
    if not isinstance(fields, dict):
        raise _malformed(path, f"{type(fields).__name__} instead of an object")
    return fields


def _malformed(path: str, reason: object) -> FormatError:
    return FormatError(f"Metadata node {path} cannot be understood ({reason}). {HOW_TO_RESTORE}")
