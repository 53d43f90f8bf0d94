"""With `riverlog.acks.fsync` an acknowledgement means: on the disk of every replica that is in sync."""

import asyncio

from riverlog.controller.decisions.topics import NewTopic
from riverlog.model.errors import ErrorCode
from riverlog.replication.partition import Partition
from tests.cluster.nodes import running_cluster
from tests.cluster.test_replicas import TOPIC, leader_of, log_of, write
from tests.node.faulty_disk import FaultyDisk


def test_nothing_is_acknowledged_that_a_follower_in_sync_has_not_on_disk() -> None:
    async def scenario() -> None:
        disks = {node_id: FaultyDisk() for node_id in (1, 2, 3)}
        async with running_cluster(0) as cluster:
            for node_id, disk in disks.items():
                await cluster.add(node_id, disk=disk)
            await cluster.until_all_see(
                lambda image: len(image.brokers) == 3 and image.controller_id is not None
            )
            everywhere = [(0, [1, 2, 3])]
            await cluster.controller.node.controller.create_topics(
                [
                    NewTopic(TOPIC, assignments=everywhere, configs={"riverlog.acks.fsync": "true"}),
                    NewTopic("plain", assignments=everywhere),
                ]
            )
            await cluster.until_all_see(lambda image: {TOPIC, "plain"} <= image.topics.keys())
            leader = await leader_of(cluster)
            assert await write(leader, b"first") == [ErrorCode.NONE]
            victim = next(broker for broker in cluster.alive if broker is not leader)
            held = disks[victim.node_id]
            held.may_sync.clear()
            second = asyncio.create_task(write(leader, b"second"))
            await cluster.until(lambda: log_of(victim).log_end_offset == 2, "it does not copy")
            # What is acknowledged here the same fetches have told of, which would tell of the other as well.
            for _ in range(3):
                assert await write(leader, b"between", topic="plain") == [ErrorCode.NONE]
            partition = leader.replicas.find(TOPIC, 0)
            assert isinstance(partition, Partition)
            committed, is_acknowledged = partition.log.high_watermark, second.done()
            held.may_sync.set()
            assert (committed, is_acknowledged) == (1, False)
            assert await second == [ErrorCode.NONE]

    asyncio.run(scenario())
