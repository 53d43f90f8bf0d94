"""Partitions whose logs are not open, as questions see them: kept while nothing changes, and not longer."""

from dataclasses import dataclass
from uuid import UUID

import pytest

from riverlog.model.errors import ErrorCode, StorageError
from riverlog.model.ids import TopicPartition
from riverlog.replication import idle_partition
from riverlog.replication.idle_partition import IdlePartition
from riverlog.replication.partition import Partition
from riverlog.storage.directory.data_directories import DataDirectories
from riverlog.storage.log.closed_log import NOTHING, LogFacts
from riverlog.testing import Broker
from tests.coordinator.hosting import Cluster, Logs
from tests.replication.replicated import ME, NOW_MS, TOPIC, image_of, opened, partition_image, records
from tests.virtual_time import run_virtually

SOLE = partition_image(replicas=[ME], isr=[ME])


@dataclass
class KnownLogs(Logs):
    """None of them is open, and all are alike."""

    facts: LogFacts = NOTHING
    is_failed: bool = False

    def facts_of(self, topic_partition: TopicPartition, topic_id: UUID) -> LogFacts:  # type: ignore[override]
        if self.is_failed:
            raise StorageError("offline")
        return self.facts


def looked_at(cluster: Cluster) -> IdlePartition:
    found = cluster.replicas.look(TOPIC, 0)
    assert isinstance(found, IdlePartition)
    return found


def test_a_closed_partition_is_made_once_for_all_questions_until_its_log_changes() -> None:
    async def run() -> None:
        logs = KnownLogs()
        cluster = Cluster(logs)
        cluster.show(image_of(SOLE))
        first = looked_at(cluster)
        assert looked_at(cluster) is first
        logs.facts = NOTHING._replace(log_start_offset=4, log_end_offset=4)
        logs.changes += 1
        assert looked_at(cluster).log.state.log_end_offset == 4
        logs.is_failed = True
        logs.changes += 1
        assert cluster.replicas.look(TOPIC, 0) is ErrorCode.KAFKA_STORAGE_ERROR

    run_virtually(run)


def test_a_closed_partition_has_the_role_of_the_newest_image() -> None:
    async def run() -> None:
        cluster = Cluster(KnownLogs())
        cluster.show(image_of(SOLE))
        assert looked_at(cluster).leader_epoch == 5
        cluster.show(image_of(partition_image(replicas=[ME], isr=[ME], epoch=6)))
        assert looked_at(cluster).leader_epoch == 6
        cluster.replicas.close()
        assert cluster.replicas.look(TOPIC, 0) is ErrorCode.NOT_LEADER_OR_FOLLOWER

    run_virtually(run)


def test_a_partition_that_was_opened_is_no_closed_one_any_more() -> None:
    async def run() -> None:
        cluster = Cluster(KnownLogs())
        cluster.show(image_of(SOLE))
        looked_at(cluster)
        partition = opened(cluster)
        partition.append(records(), NOW_MS, for_all_replicas=False)
        assert cluster.replicas.look(TOPIC, 0) is partition

    run_virtually(run)


def test_directories_say_that_a_log_was_opened_or_closed_or_that_they_failed() -> None:
    with Broker() as broker:
        broker.create_topic("orders", partitions=1)
        directories = broker.node._directories
        assert isinstance(directories, DataDirectories)
        seen = [directories.changes]
        broker.produce("orders", "one")
        seen.append(directories.changes)
        directories.delete_log(TopicPartition("orders", 0))
        seen.append(directories.changes)
        directories.online[0].health.fail("pulled out")
        seen.append(directories.changes)
    assert seen == sorted(set(seen))


def test_of_many_closed_partitions_the_newest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle_partition, "_LOOKED_AT_MAX", 2)

    async def run() -> None:
        cluster = Cluster(KnownLogs())
        cluster.show(image_of(SOLE, SOLE, SOLE))
        look = cluster.replicas.look
        first, second = look(TOPIC, 0), look(TOPIC, 1)
        assert look(TOPIC, 0) is first
        third = look(TOPIC, 2)
        assert look(TOPIC, 1) is second
        assert look(TOPIC, 2) is third
        assert look(TOPIC, 0) is not first

    run_virtually(run)


def test_a_copy_that_was_never_written_to_is_not_opened_by_questions() -> None:
    async def run() -> None:
        cluster = Cluster(KnownLogs())
        cluster.show(image_of(partition_image(leader=2)))
        copy = looked_at(cluster)
        assert copy.refusal() is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert copy.read_refusal(None) is None
        assert copy.log.state.log_end_offset == copy.log.state.high_watermark == 0
        cluster.show(image_of(partition_image(epoch=6)))
        assert looked_at(cluster).refusal() is None

    run_virtually(run)


@pytest.mark.parametrize("leader", [ME, 2])
def test_one_with_other_replicas_is_opened_by_questions_where_not_all_is_known_to_be_committed(
    leader: int,
) -> None:
    async def run() -> None:
        logs = KnownLogs(facts=NOTHING._replace(high_watermark=4, log_end_offset=4))
        cluster = Cluster(logs)
        cluster.show(image_of(partition_image(leader=leader)))
        assert looked_at(cluster).log.state.high_watermark == 4
        logs.facts = NOTHING._replace(high_watermark=3, log_end_offset=4)
        logs.changes += 1
        assert isinstance(cluster.replicas.look(TOPIC, 0), Partition)

    run_virtually(run)


def test_all_that_the_only_replica_has_is_committed() -> None:
    async def run() -> None:
        cluster = Cluster(KnownLogs(facts=NOTHING._replace(high_watermark=3, log_end_offset=4)))
        cluster.show(image_of(SOLE))
        assert looked_at(cluster).log.state.high_watermark == 4

    run_virtually(run)
