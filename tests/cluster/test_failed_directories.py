"""A disk that fails under one broker of a cluster: others lead, and it counts again when it is mended."""

import asyncio
import logging
import resource
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from riverlog.controller.decisions.elections import Election
from riverlog.controller.decisions.topics import NewTopic
from riverlog.metadata.image import PartitionImage
from riverlog.model.errors import ErrorCode, StorageError
from riverlog.model.ids import NodeId, TopicPartition
from riverlog.replication.partition import Partition
from riverlog.testing import Cluster
from riverlog.testing.cluster_process import ClusterProcess
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.cluster.nodes import ClusterNode, NodeCluster, running_cluster
from tests.cluster.test_replicas import TOPIC, leader_of, write
from tests.node.faulty_disk import FaultyDisk
from tests.waiting import eventually

PARTITIONS = 2
QUIET = logging.getLogger("tests.quiet")
QUIET.setLevel(logging.CRITICAL)


@asynccontextmanager
async def faulty_cluster(tmp_path: Path, **settings: str) -> AsyncIterator[NodeCluster]:
    """Three brokers with two directories each, and a topic that all replicate, with a partition in each."""
    async with running_cluster(0, **settings) as cluster:
        for node_id in (1, 2, 3):
            paths = f"{tmp_path}/{node_id}/a,{tmp_path}/{node_id}/b"
            await cluster.add(node_id, disk=FaultyDisk(), log_dirs=paths)
        await cluster.until_all_see(lambda image: len(image.brokers) == 3 and image.controller_id is not None)
        wanted = NewTopic(TOPIC, assignments=[(index, [1, 2, 3]) for index in range(PARTITIONS)])
        await cluster.controller.node.controller.create_topics([wanted])
        await cluster.until_all_see(lambda image: TOPIC in image.topics)
        for index in range(PARTITIONS):
            assert await write(await leader_of(cluster, index), b"first", index=index) == [ErrorCode.NONE]
        await cluster.until(lambda: all(len(broker.replicas) == PARTITIONS for broker in cluster.alive))
        try:
            yield cluster
        finally:
            for broker in cluster.alive:
                disk_of(broker).broken = None
                disk_of(broker).is_full = disk_of(broker).fails_to_sync = False


def in_cluster(
    **settings: str,
) -> Callable[[Callable[[NodeCluster, Path], Awaitable[None]]], Callable[[Path], None]]:
    def made(test: Callable[[NodeCluster, Path], Awaitable[None]]) -> Callable[[Path], None]:
        def run(tmp_path: Path) -> None:
            async def scenario() -> None:
                async with faulty_cluster(tmp_path, **settings) as cluster:
                    await test(cluster, tmp_path)

            asyncio.run(scenario())

        run.__name__ = test.__name__
        return run

    return made


def disk_of(broker: ClusterNode) -> FaultyDisk:
    assert isinstance(broker.disk, FaultyDisk)
    return broker.disk


def break_directory_of(broker: ClusterNode, index: int = 0) -> None:
    partition = broker.replicas.find(TOPIC, index)
    assert isinstance(partition, Partition)
    disk_of(broker).broken = str(Path(partition.log.directory).parent)


def state(broker: ClusterNode, index: int = 0) -> PartitionImage:
    return broker.image.topics[TOPIC].partitions[index]


async def offline_replicas(broker: ClusterNode) -> list[list[int]]:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
    response = await broker.ask(request, MetadataResponse, 12)
    return [each.offline_replicas for each in response.topics[0].partitions]


async def until_handed_over(cluster: NodeCluster, victim: ClusterNode) -> None:
    await cluster.until_all_see(
        lambda image: (
            image.topics[TOPIC].partitions[0].leader not in (None, victim.node_id)
            and victim.node_id not in image.topics[TOPIC].partitions[0].isr
        ),
        "it is not handed over",
    )


@in_cluster()
async def test_a_leader_hands_over_what_is_in_a_directory_that_fails(
    cluster: NodeCluster, tmp_path: Path
) -> None:
    victim = await leader_of(cluster)
    epoch = state(victim).leader_epoch
    break_directory_of(victim)
    assert await write(victim, b"never written") == [ErrorCode.KAFKA_STORAGE_ERROR]
    await until_handed_over(cluster, victim)
    assert state(victim).leader_epoch == epoch + 1
    assert state(victim, 1).leader == victim.node_id, "the other directory is in order"
    assert await write(victim, b"never written") == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert await write(victim, b"second", index=1) == [ErrorCode.NONE]
    leader = await leader_of(cluster)
    assert leader is not victim
    assert await write(leader, b"second") == [ErrorCode.NONE]
    for broker in cluster.alive:
        assert await offline_replicas(broker) == [[victim.node_id], []]


@in_cluster(riverlog_acks_fsync="true")
async def test_a_failed_sync_hands_over_and_what_waited_for_it_may_be_written(
    cluster: NodeCluster, tmp_path: Path
) -> None:
    victim = await leader_of(cluster)
    disk_of(victim).fails_to_sync = True
    assert await write(victim, b"second") == [ErrorCode.REQUEST_TIMED_OUT]
    await until_handed_over(cluster, victim)
    assert await write(await leader_of(cluster), b"second") == [ErrorCode.NONE]


@in_cluster()
async def test_a_follower_leaves_the_isr_at_once_and_stays_out_until_its_disk_is_mended(
    cluster: NodeCluster, tmp_path: Path
) -> None:
    leader = await leader_of(cluster)
    victim = next(broker for broker in cluster.alive if broker is not leader)
    break_directory_of(victim)
    # Within the lag time of 30 s no leader would do without it.
    assert await write(leader, b"second", b"third") == [ErrorCode.NONE] * 2
    await until_handed_over(cluster, victim)
    assert await write(leader, b"fourth") == [ErrorCode.NONE]
    assert await offline_replicas(leader) == [[victim.node_id], []]
    assert victim.node_id not in state(leader).isr
    assert victim.node_id in state(leader, 1).isr
    disk_of(victim).broken = None
    await victim.kill()
    await victim.start()
    await cluster.until_all_see(
        lambda image: set(image.topics[TOPIC].partitions[0].isr) == {1, 2, 3}, "it does not come back"
    )
    assert await offline_replicas(leader) == [[], []]


async def starts_without(cluster: NodeCluster, tmp_path: Path, name: str) -> None:
    """And has what was in the directory once that is back."""
    victim = cluster[2]
    [lost] = [index for index in range(PARTITIONS) if (tmp_path / "2" / name / f"{TOPIC}-{index}").is_dir()]
    kept = 1 - lost
    await victim.stop()
    (tmp_path / "2" / name).rename(tmp_path / "kept")
    (tmp_path / "2" / name).write_bytes(b"")
    await victim.start()
    await cluster.until_all_see(
        lambda image: set(image.topics[TOPIC].partitions[kept].isr) == {1, 2, 3}, "it does not come back"
    )
    assert set(state(cluster[1], lost).isr) == {1, 3}
    assert await write(await leader_of(cluster, lost), b"second", index=lost) == [ErrorCode.NONE]
    await victim.stop()
    (tmp_path / "2" / name).unlink()
    (tmp_path / "kept").rename(tmp_path / "2" / name)
    await victim.start()
    await cluster.until_all_see(
        lambda image: all(set(each.isr) == {1, 2, 3} for each in image.topics[TOPIC].partitions),
        "it does not come back",
    )


@in_cluster()
async def test_a_broker_starts_without_a_directory_that_is_dead(cluster: NodeCluster, tmp_path: Path) -> None:
    await starts_without(cluster, tmp_path, "b")


@in_cluster()
async def test_a_broker_starts_without_the_first_of_its_directories(
    cluster: NodeCluster, tmp_path: Path
) -> None:
    await starts_without(cluster, tmp_path, "a")


@in_cluster()
async def test_a_broker_without_any_directory_does_not_start(cluster: NodeCluster, tmp_path: Path) -> None:
    victim = cluster[2]
    await victim.stop()
    for name in "ab":
        (tmp_path / "2" / name).rename(tmp_path / f"kept {name}")
        (tmp_path / "2" / name).write_bytes(b"")
    with pytest.raises(StorageError, match="2/a cannot be used"):
        await victim.start()


@in_cluster()
async def test_nobody_is_elected_whose_directory_has_failed(cluster: NodeCluster, tmp_path: Path) -> None:
    first = cluster[1]
    assert await leader_of(cluster) is first
    break_directory_of(first)
    await write(first, b"never written")
    await until_handed_over(cluster, first)
    name = TopicPartition(TOPIC, 0)
    elected = await cluster.controller.node.controller.elect_leaders(Election.PREFERRED, [name])
    refusal = elected[name]
    assert refusal is not None
    assert refusal.error is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    for broker in (cluster[2], cluster[3]):
        await broker.kill()
    await first_sees_no_leader(cluster, first)


async def first_sees_no_leader(cluster: NodeCluster, first: ClusterNode) -> None:
    await cluster.until(lambda: state(first).leader is None, "a broker without the log leads")
    await cluster.until(lambda: state(first, 1).leader == first.node_id, "nobody leads the other one")


@in_cluster()
async def test_a_broker_without_any_directory_leaves_the_cluster(
    cluster: NodeCluster, tmp_path: Path
) -> None:
    victim = await leader_of(cluster)
    disk_of(victim).broken = str(tmp_path)
    for index in range(PARTITIONS):
        assert await write(victim, b"never written", index=index) != [ErrorCode.NONE]
    await cluster.until(victim.node.has_failed.is_set, "it goes on without a disk")
    others = [broker for broker in cluster.alive if broker is not victim]
    await cluster.until(
        lambda: all(victim.node_id not in broker.image.brokers for broker in others), "it is registered"
    )
    await cluster.until(lambda: all(state(each).leader != victim.node_id for each in others))
    disk_of(victim).broken = None
    await victim.kill()


@in_cluster()
async def test_a_full_disk_of_the_leader_is_not_handed_over(cluster: NodeCluster, tmp_path: Path) -> None:
    leader = await leader_of(cluster)
    before = state(leader)
    disk_of(leader).is_full = True
    assert await write(leader, *[b"too much"] * 3) == [ErrorCode.KAFKA_STORAGE_ERROR] * 3
    other = next(broker for broker in cluster.alive if broker is not leader)
    await other.kill()
    await other.start()  # The controller has looked at all partitions, and all followers have asked.
    await cluster.until_all_see(lambda image: len(image.topics[TOPIC].partitions[0].isr) == 3)
    assert (state(leader).leader, state(leader).leader_epoch) == (before.leader, before.leader_epoch)
    disk_of(leader).is_full = False
    assert await write(leader, b"second") == [ErrorCode.NONE]


@in_cluster(replica_lag_time_max_ms="500")
async def test_a_follower_with_a_full_disk_leaves_the_isr_and_comes_back_when_there_is_room(
    cluster: NodeCluster, tmp_path: Path
) -> None:
    leader = await leader_of(cluster)
    victim = next(broker for broker in cluster.alive if broker is not leader)
    disk_of(victim).is_full = True
    assert await write(leader, b"second") == [ErrorCode.NONE]
    await cluster.until_all_see(lambda image: _isr(image) == {1, 2, 3} - {victim.node_id})
    assert await offline_replicas(leader) == [[], []]
    assert state(leader, 1).isr == (1, 2, 3), "nothing was written there"
    disk_of(victim).is_full = False
    await cluster.until_all_see(lambda image: _isr(image) == {1, 2, 3}, "it does not come back")
    found = victim.replicas.find(TOPIC, 0)
    assert isinstance(found, Partition)
    assert found.log.log_end_offset == 2


def _isr(image: Any) -> set[NodeId]:
    return set(image.topics[TOPIC].partitions[0].isr)


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="Linux alone limits the files of others")
def test_a_process_without_any_directory_ends_with_1() -> None:
    with Cluster(brokers=2, processes=True, replica_lag_time_max_ms=2000) as cluster:
        cluster.create_topic(TOPIC, 2)
        for partition in range(2):
            cluster.produce(TOPIC, "first", partition=partition)
        led = next(index for index, leader in cluster.leaders(TOPIC).items() if leader == 2)
        victim = cluster[2]
        assert isinstance(victim, ClusterProcess)
        # Writing beyond the limit fails, and not for want of room. What it says on standard error is shorter.
        resource.prlimit(victim.pid, resource.RLIMIT_FSIZE, (50_000, 50_000))
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers}, logger=QUIET)
        producer.produce(TOPIC, bytes(100_000), partition=led)
        eventually(lambda: not victim.is_running, "it goes on without a disk")
        producer.purge()
        assert victim.exit_code == 1
        assert "All data directories have failed" in victim.errors()
