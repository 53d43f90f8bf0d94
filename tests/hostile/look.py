"""Plain questions to a broker, asked from outside with kio's bytes."""

from __future__ import annotations

import struct
from typing import Any

from tests.differential import codec
from tests.differential.connection import Connection

Json = Any


def connect(bootstrap: str) -> Connection:
    host, _, port = bootstrap.rpartition(":")
    return Connection(host, int(port), 30.0)


def send(connection: Connection, payload: bytes) -> None:
    connection.send(struct.pack(">i", len(payload)) + payload)


def ask(bootstrap: str, api: str, version: int, fields: Json) -> Json:
    connection = connect(bootstrap)
    try:
        send(connection, codec.encode_request(api, version, fields, 1, None))
        return codec.decode_reply(api, version, connection.receive())
    finally:
        connection.close()


def create_topic(bootstrap: str, name: str, partitions: int = 1, **configs: str) -> None:
    wanted = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    topic = {"name": name, "num_partitions": partitions, "replication_factor": 1, "configs": wanted}
    reply = ask(bootstrap, "CreateTopics", 4, {"topics": [topic], "timeout_ms": 10_000})
    assert reply["topics"][0]["error_code"] == "NONE", reply


def offered_versions(bootstrap: str) -> dict[str, range]:
    client = {"client_software_name": "a", "client_software_version": "b"}
    return {
        codec.api_name(entry["api_key"]): range(entry["min_version"], entry["max_version"] + 1)
        for entry in ask(bootstrap, "ApiVersions", 4, client)["api_keys"]
    }


def topic_id_of(bootstrap: str, name: str) -> str:
    asked = {"topics": [{"name": name}], "allow_auto_topic_creation": False}
    return str(ask(bootstrap, "Metadata", 12, asked)["topics"][0]["topic_id"])
