"""Groups that change between the classic and the consumer protocol while real clients read on."""

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

from riverlog.model.errors import ErrorCode
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest
from riverlog.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tests.broker.raw_client import RawClient
from tests.broker.test_consumer_groups import Member, described
from tests.broker.test_consumer_groups_clients import SETTINGS, consumer, fill, read, shares


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(config=SETTINGS) as broker:
        yield broker


def classic(broker: Broker, group: str, strategy: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group,
            "partition.assignment.strategy": strategy,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "heartbeat.interval.ms": 100,
            "session.timeout.ms": 6_000,
        }
    )


def even(*consumers: Consumer) -> Callable[[list[str]], bool]:
    """All four partitions have one owner each, and nobody has two more than another."""

    def is_even(_: list[str]) -> bool:
        found = shares(*consumers)
        sizes = [len(each) for each in found]
        return sorted(sum(found, start=[])) == [0, 1, 2, 3] and max(sizes) - min(sizes) <= 1  # noqa: RUF017

    return is_even


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_group_changes_over_and_back_and_loses_nothing(broker: Broker, strategy: str) -> None:
    topic = group = f"migrating-{strategy}"
    broker.create_topic(topic, 4)
    old, older = classic(broker, group, strategy), classic(broker, group, strategy)
    for each in (old, older):
        each.subscribe([topic])
    read([old, older], even(old, older))
    fill(broker, topic, 0, 40, 4)
    got = read([old, older], lambda values: len(values) >= 40)
    for each in (old, older):
        each.commit(asynchronous=False)
    new = consumer(broker, group)
    new.subscribe([topic])
    got += read([old, older, new], even(old, older, new))
    fill(broker, topic, 40, 40, 4)
    got += read([old, older, new], lambda values: len(set(got + values)) >= 80)
    for each in (old, older, new):
        each.commit(asynchronous=False)
    new.close()
    got += read([old, older], even(old, older))
    fill(broker, topic, 80, 40, 4)
    got += read([old, older], lambda values: len(set(got + values)) >= 120)
    for each in (old, older):
        each.commit(asynchronous=False)
    assert sorted(set(got), key=int) == [str(number) for number in range(120)]
    found = old.committed([TopicPartition(topic, index) for index in range(4)])
    assert [each.offset for each in found] == [30, 30, 30, 30]
    old.close()
    older.close()


def test_a_group_with_members_of_both_protocols_survives_a_kill_of_the_broker() -> None:
    with Broker(config=SETTINGS) as broker:
        broker.create_topic("mixed", 4)
        old, new = classic(broker, "mixed", "range"), consumer(broker, "mixed")
        old.subscribe(["mixed"])
        read([old], lambda _: shares(old) == [[0, 1, 2, 3]])
        new.subscribe(["mixed"])
        read([old, new], even(old, new))
        broker.kill()
        broker.restart()
        values = fill(broker, "mixed", 0, 40, 4)
        assert sorted(read([old, new], lambda got: len(got) >= 40)) == sorted(values)
        old.close()
        read([new], lambda _: shares(new) == [[0, 1, 2, 3]])
        new.close()


def join_request(group: str, member_id: str = "") -> JoinGroupRequest:
    topic = b"\x00\x05other"
    subscription = b"\x00\x00" + b"\x00\x00\x00\x01" + topic + b"\xff\xff\xff\xff"
    return JoinGroupRequest(
        group_id=group,
        member_id=member_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription)],
    )


def test_who_waits_in_a_rebalance_is_called_back_when_the_group_changes_over(broker: Broker) -> None:
    with RawClient(broker) as first, RawClient(broker) as second, RawClient(broker) as third:
        first.ask(ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest(key="waiting"))
        leader = first.ask(ApiKey.JOIN_GROUP, 3, join_request("waiting"))
        assert leader.error_code == ErrorCode.NONE
        second.send(ApiKey.JOIN_GROUP, 3, join_request("waiting"))
        assert Member(third, "waiting", "ann").join("other") == []
        waited = second.receive(ApiKey.JOIN_GROUP, 3)
        assert waited.error_code == ErrorCode.REBALANCE_IN_PROGRESS
        again = second.ask(ApiKey.JOIN_GROUP, 3, join_request("waiting", waited.member_id))
        assert (again.error_code, again.leader, again.generation_id) == (ErrorCode.NONE, "", 2)
        [group] = described(third, "waiting")
        assert sorted(member.member_type for member in group.members) == [0, 0, 1]


def test_a_group_does_not_change_over_where_the_policy_forbids_it() -> None:
    forbidding = Broker(config={**SETTINGS, "group.consumer.migration.policy": "disabled"})
    with forbidding as broker, RawClient(broker) as raw:
        raw.ask(ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest(key="fixed"))
        assert raw.ask(ApiKey.JOIN_GROUP, 3, join_request("fixed")).error_code == ErrorCode.NONE
        assert Member(raw, "fixed", "ann").join("other") is ErrorCode.GROUP_ID_NOT_FOUND
