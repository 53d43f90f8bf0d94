"""Reading from replicas over sockets: the leader sends a client to its rack, and there it reads the same."""

from collections.abc import Iterator
from uuid import UUID

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.testing import Cluster
from riverlog.testing.cluster_broker import ClusterBroker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from tests.broker.raw_client import RawClient, fetches_waiting
from tests.waiting import eventually

RACKS = ("a", "b", "c")
TOPIC = "orders"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=4, racks=(*RACKS, "d"), replication_factor=3, replica_selector_class="rack") as made:
        made.create_topic(TOPIC)
        made.produce(TOPIC, "one", "two", "three")
        yield made


def broker(cluster: Cluster, node_id: int) -> ClusterBroker:
    found = cluster[node_id]
    assert isinstance(found, ClusterBroker)
    return found


@pytest.fixture(scope="module")
def placed(cluster: Cluster) -> tuple[int, int, int]:
    """The leader, a follower, and the broker without a replica; the follower has everything."""
    image = broker(cluster, 1).node.image.topics[TOPIC].partitions[0]
    assert image.leader is not None
    follower = next(each for each in image.replicas if each != image.leader)
    [stranger] = {1, 2, 3, 4} - set(image.replicas)
    with RawClient(broker(cluster, follower)) as client:
        eventually(lambda: fetched(client, cluster, 0).high_watermark == 3)
    return image.leader, follower, stranger


def request(cluster: Cluster, offset: int, version: int, rack: str, max_wait_ms: int) -> FetchRequest:
    topic_id: UUID = broker(cluster, 1).node.image.topics[TOPIC].topic_id
    by_id = version >= 13
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=2**20)
    topic = FetchTopic(
        topic="" if by_id else TOPIC, topic_id=topic_id if by_id else None, partitions=[partition]
    )
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=2**20,
        session_epoch=-1,
        topics=[topic],
        rack_id=rack if version >= 11 else "",
    )


def fetched(
    client: RawClient, cluster: Cluster, offset: int, version: int = 18, rack: str = ""
) -> PartitionData:
    reply = client.ask(ApiKey.FETCH, version, request(cluster, offset, version, rack, 0))
    data: PartitionData = reply.responses[0].partitions[0]
    return data


@pytest.mark.parametrize("version", [10, 11, 12, 13, 15, 18])
def test_a_client_is_sent_to_its_rack_and_reads_the_same_there(
    cluster: Cluster, placed: tuple[int, int, int], version: int
) -> None:
    leader, follower, stranger = placed
    rack = RACKS[follower - 1] if follower <= len(RACKS) else "d"
    with (
        RawClient(broker(cluster, leader)) as at_leader,
        RawClient(broker(cluster, follower)) as near,
        RawClient(broker(cluster, stranger)) as far,
    ):
        led = fetched(at_leader, cluster, 0, version)
        assert led.records
        for offset in range(3):
            sent = fetched(at_leader, cluster, offset, version, rack)
            read = fetched(near, cluster, offset, version, rack)
            if version < 11:
                assert (sent.preferred_read_replica, bool(sent.records)) == (-1, True)
                assert read.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
                continue
            assert (sent.preferred_read_replica, bool(sent.records)) == (follower, False)
            assert read.records == fetched(at_leader, cluster, offset, version).records
            assert (read.high_watermark, read.last_stable_offset) == (3, 3)
        refused = fetched(far, cluster, 0, version, rack)
        assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_client_that_waits_at_a_follower_is_woken_by_what_is_written_at_the_leader(
    cluster: Cluster, placed: tuple[int, int, int]
) -> None:
    _, follower, _ = placed
    near = broker(cluster, follower)
    with RawClient(near, timeout_s=60) as client:
        end = fetched(client, cluster, 0).high_watermark
        before = fetches_waiting(near)
        assert before is not None
        client.send(ApiKey.FETCH, 18, request(cluster, end, 18, "", 10 * 60_000))
        eventually(lambda: fetches_waiting(near) == before + 1)
        cluster.produce(TOPIC, "four")
        [topic] = client.receive(ApiKey.FETCH, 18).responses
        assert (topic.partitions[0].high_watermark, bool(topic.partitions[0].records)) == (end + 1, True)
