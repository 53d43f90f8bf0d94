"""`riverlog registry`: brokers and consumers at the paths that they had in ZooKeeper."""

import json
import time
import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer

from tests.cli.running import CommandLine


@pytest.fixture(params=["classic", "consumer"])
def reader(request: pytest.FixtureRequest, riverlog: CommandLine) -> Iterator[tuple[str, str, Consumer]]:
    """A group with one member that has both partitions of a topic, and has committed one of them."""
    topic, group = riverlog.topic("--partitions", "2"), f"group-{uuid.uuid4().hex[:12]}"
    riverlog.produce(topic, "a", "b", options=("-p", "1"))
    consumer = Consumer(
        {
            "bootstrap.servers": riverlog.bootstrap,
            "group.id": group,
            "group.protocol": request.param,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    deadline, seen = time.monotonic() + 30, 0
    while seen < 2:
        assert time.monotonic() < deadline
        seen += consumer.poll(0.1) is not None
    consumer.commit(asynchronous=False)
    yield topic, group, consumer
    consumer.close()


def test_members_owners_and_offsets_of_a_group(
    riverlog: CommandLine, reader: tuple[str, str, Consumer]
) -> None:
    topic, group, consumer = reader
    told = riverlog("registry", "get", f"/consumers/{group}", "-o", "json").json
    [(member, registration)] = told["ids"].items()
    assert member == consumer.memberid()
    assert registration == {"version": 1, "subscription": {topic: 1}, "pattern": "static", "timestamp": "-1"}
    assert told["owners"] == {topic: {"0": f"{member}-0", "1": f"{member}-0"}}
    assert told["offsets"] == {topic: {"1": 2}}
    assert riverlog("registry", "get", f"/consumers/{group}/offsets/{topic}/1").stdout == "2\n"
    assert {"name": group} in riverlog("registry", "ls", "/consumers", "-o", "json").json


def test_a_member_that_has_left_leaves_only_its_offsets(
    riverlog: CommandLine, reader: tuple[str, str, Consumer]
) -> None:
    topic, group, consumer = reader
    consumer.close()
    told = riverlog("registry", "get", f"/consumers/{group}", "-o", "json").json
    assert (told["ids"], told["owners"], told["offsets"]) == ({}, {}, {topic: {"1": 2}})


def test_brokers_topics_controller_and_cluster(riverlog: CommandLine) -> None:
    topic = riverlog.topic()
    assert [each["name"] for each in riverlog("registry", "ls", "/", "-o", "json").json] == [
        *("brokers", "cluster", "consumers", "controller")
    ]
    [broker] = [each["name"] for each in riverlog("registry", "ls", "/brokers/ids", "-o", "json").json]
    address = json.loads(riverlog("registry", "get", f"/brokers/ids/{broker}").stdout)
    assert f"{address['host']}:{address['port']}" == riverlog.bootstrap
    state = riverlog("registry", "get", f"/brokers/topics/{topic}/partitions/0/state", "-o", "json").json
    assert state == {"version": 1, "leader": int(broker), "isr": [int(broker)]}
    assert riverlog("registry", "get", "/controller", "-o", "json").json["brokerid"] == int(broker)
    assert riverlog("registry", "get", "/cluster/id", "-o", "json").json["id"]


def test_what_is_not_there_is_said_with_where_to_look(riverlog: CommandLine) -> None:
    assert "ls /brokers/ids" in riverlog("registry", "get", "/brokers/ids/77", code=4).stderr
    assert "has no data" in riverlog("registry", "get", "/brokers", code=4).stderr
