"""Groups under the classic protocol with real clients: sharing, rebalancing, committing, resuming."""

import time
from collections.abc import Callable, Iterator, Sequence
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient

from tests.conformance.clients.confluent import ConfluentKafka
from tests.conformance.clients.group_members import (
    AioMember,
    ConfluentMember,
    GroupMember,
    KafkaPythonMember,
)
from tests.conformance.clients.interface import Message
from tests.conformance.conftest import MakeTopic

DEADLINE_S = 30.0
KINDS: dict[str, type[GroupMember]] = {
    "confluent-kafka": ConfluentMember,
    "kafka-python": KafkaPythonMember,
    "aiokafka": AioMember,
}


@pytest.fixture
def group() -> str:
    return f"group-{uuid4().hex[:12]}"


@pytest.fixture(params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> type[GroupMember]:
    return KINDS[request.param]


@pytest.fixture
def join(bootstrap: str, group: str) -> Iterator[Callable[..., GroupMember]]:
    """Make a member, which leaves when the test is over."""
    made: list[GroupMember] = []

    def make(kind: type[GroupMember], topic: str, **more: object) -> GroupMember:
        made.append(kind(bootstrap, group, topic, **more))
        return made[-1]

    yield make
    for each in made:
        each.close()


def fill(bootstrap: str, topic: str, partitions: int, values: Sequence[int]) -> None:
    client = ConfluentKafka(bootstrap)
    for partition in range(partitions):
        mine = [Message(value=str(each).encode()) for each in values if each % partitions == partition]
        client.produce(topic, mine, partition=partition)


def settle(members: Sequence[GroupMember], sizes: Sequence[int]) -> list[bytes]:
    """Poll until the partitions are shared like that, each by one member; what was read meanwhile."""
    seen: list[bytes] = []
    end = time.monotonic() + DEADLINE_S
    while True:
        for each in members:
            seen += each.poll()
        shares = [each.partitions() for each in members]
        total = sum(len(share) for share in shares)
        if sorted(map(len, shares)) == sorted(sizes) and len(set().union(*shares)) == total:
            return seen
        assert time.monotonic() < end, f"the shares are {shares}"


def read(members: Sequence[GroupMember], count: int) -> list[int]:
    seen: list[int] = []
    end = time.monotonic() + DEADLINE_S
    while len(seen) < count:
        for each in members:
            seen += map(int, each.poll())
        assert time.monotonic() < end, f"{len(seen)} of {count}"
    return seen


def test_members_share_the_partitions_and_take_over_from_who_leaves(
    bootstrap: str,
    make_topic: MakeTopic,
    join: Callable[..., GroupMember],
    group: str,
    kind: type[GroupMember],
) -> None:
    topic = make_topic(4)
    first = join(kind, topic)
    settle([first], [4])
    second = kind(bootstrap, group, topic)
    settle([first, second], [2, 2])
    fill(bootstrap, topic, 4, range(40))
    assert sorted(read([first, second], 40)) == list(range(40))
    first.commit()
    second.commit()
    second.close()
    settle([first], [4])
    fill(bootstrap, topic, 4, range(40, 60))
    assert sorted(read([first], 20)) == list(range(40, 60))


def test_a_group_resumes_where_it_committed(
    bootstrap: str, make_topic: MakeTopic, group: str, kind: type[GroupMember]
) -> None:
    topic = make_topic(2)
    fill(bootstrap, topic, 2, range(20))
    member = kind(bootstrap, group, topic)
    assert sorted(read([member], 20)) == list(range(20))
    member.commit()
    fill(bootstrap, topic, 2, range(20, 30))
    assert sorted(read([member], 10)) == list(range(20, 30))
    member.close()
    member = kind(bootstrap, group, topic)
    assert sorted(read([member], 10)) == list(range(20, 30))
    member.close()


def test_clients_of_different_make_share_a_group(
    bootstrap: str, make_topic: MakeTopic, join: Callable[..., GroupMember]
) -> None:
    topic = make_topic(3)
    members = [join(kind, topic) for kind in (KafkaPythonMember, AioMember)]
    members.append(join(ConfluentMember, topic, **{"partition.assignment.strategy": "range,roundrobin"}))
    settle(members, [1, 1, 1])
    fill(bootstrap, topic, 3, range(30))
    assert sorted(read(members, 30)) == list(range(30))


def test_a_cooperative_rebalance_leaves_what_stays_where_it_is(
    make_topic: MakeTopic, join: Callable[..., GroupMember]
) -> None:
    topic = make_topic(4)
    sticky = {"partition.assignment.strategy": "cooperative-sticky"}
    first = join(ConfluentMember, topic, **sticky)
    settle([first], [4])
    before = first.partitions()
    second = join(ConfluentMember, topic, **sticky)
    settle([first, second], [2, 2])
    assert first.partitions() < before


def test_a_static_member_comes_back_to_its_partitions_without_a_rebalance(
    bootstrap: str, make_topic: MakeTopic, join: Callable[..., GroupMember], group: str
) -> None:
    topic = make_topic(2)
    static = ConfluentMember(bootstrap, group, topic, **{"group.instance.id": "i"})
    other = join(ConfluentMember, topic)
    settle([static, other], [1, 1])
    theirs, kept = static.partitions(), other.partitions()
    static.close()
    back = join(ConfluentMember, topic, **{"group.instance.id": "i"})
    settle([back, other], [1, 1])
    assert (back.partitions(), other.partitions()) == (theirs, kept)


def test_groups_are_listed_described_and_deleted(
    bootstrap: str, admin: AdminClient, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic(1)
    member = ConfluentMember(bootstrap, group, topic)
    settle([member], [1])
    listed = {each.group_id: each for each in admin.list_consumer_groups().result().valid}
    assert listed[group].state.name == "STABLE"
    assert listed[group].type.name == "CLASSIC"
    described = admin.describe_consumer_groups([group])[group].result()
    assert (described.state.name, described.partition_assignor) == ("STABLE", "range")
    [shown] = described.members
    assert [(each.topic, each.partition) for each in shown.assignment.topic_partitions] == [(topic, 0)]
    assert admin.delete_consumer_groups([group])[group].exception() is not None
    member.close()
    assert admin.delete_consumer_groups([group])[group].result() is None
    assert group not in {each.group_id for each in admin.list_consumer_groups().result().valid}
