"""The partitions of a node as they follow one image after the other."""

from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from riverlog.metadata.image import ClusterImage, PartitionImage, TopicImage
from riverlog.model.config.slices import LogConfig
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicId
from riverlog.replication.partition import Partition
from riverlog.replication.roles import Follower, Leader
from tests.coordinator.hosting import Cluster, Logs
from tests.replication.replicated import (
    ME,
    NOW_MS,
    SECOND,
    THIRD,
    TOPIC,
    fetched,
    image_of,
    opened,
    partition_image,
    records,
)
from tests.replication.test_partition_model import Watching
from tests.virtual_time import VirtualLoop, run_virtually

T = TypeVar("T")


def test_an_isr_that_shrinks_commits_what_the_others_have_and_disturbs_nobody() -> None:
    async def run() -> None:
        cluster, consumer = Cluster(), Watching()
        partition = opened(cluster, partition_image())
        partition.watch(consumer)
        partition.append(records(), NOW_MS, for_all_replicas=True)
        waiting = partition.acknowledged(1)
        assert waiting is not None
        fetched(partition, SECOND, 5, 1)
        assert not waiting.done()
        cluster.show(image_of(partition_image(isr=[ME, SECOND])))
        assert (waiting.result(), partition.log.high_watermark) == (True, 1)
        assert (consumer.disturbed, consumer.size_bytes) == (0, len(records()))

    run_virtually(run)


def test_below_the_minimum_nothing_is_committed_until_there_are_enough_again() -> None:
    async def run() -> None:
        cluster = Cluster(Logs(config=LogConfig(min_insync_replicas=2)))
        partition = opened(cluster, partition_image(isr=[ME]))
        partition.append(records(), NOW_MS, for_all_replicas=False)
        assert (partition.log.high_watermark, partition.log.log_end_offset) == (0, 1)
        fetched(partition, SECOND, 5, 1)
        cluster.show(image_of(partition_image(isr=[ME, SECOND])))
        assert partition.log.high_watermark == 1

    run_virtually(run)


def test_a_change_looks_at_the_partitions_that_changed_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        cluster = Cluster()
        states = [partition_image() for _ in range(20)]
        cluster.show(image_of(*states))
        for index in range(20):
            cluster.replicas.find(TOPIC, index)
        looked_at: list[int] = []
        take_role = Partition.take_role

        def counting(self: Partition, *arguments: object) -> None:
            looked_at.append(self.topic_partition.partition)
            take_role(self, *arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(Partition, "take_role", counting)
        states[7] = partition_image(isr=[ME])
        cluster.show(image_of(*states))
        assert looked_at == [7]

    run_virtually(run)


def test_a_replica_that_is_taken_off_this_node_is_let_go_with_its_log() -> None:
    async def run() -> None:
        cluster, consumer = Cluster(), Watching()
        partition = opened(cluster, partition_image())
        partition.watch(consumer)
        partition.append(records(), NOW_MS, for_all_replicas=True)
        waiting = partition.acknowledged(1)
        elsewhere = partition_image(replicas=[SECOND, THIRD], isr=[SECOND, THIRD], leader=2, epoch=6)
        cluster.show(image_of(elsewhere))
        assert waiting is not None
        assert waiting.result() is False
        assert partition.refusal() is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert cluster.replicas.find(TOPIC, 0) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert consumer.disturbed == 1
        assert cluster.logs.disk.list("/data") == []
        again = opened(cluster, partition_image(epoch=7))
        assert again.log.log_end_offset == 0

    run_virtually(run)


states = st.builds(
    lambda others, isr, leader, epoch: PartitionImage(
        tuple(sorted({leader, *others})), tuple(sorted({leader, *(isr & others)})), leader, epoch, 0
    ),
    st.sets(st.sampled_from([ME, SECOND, THIRD])),
    st.sets(st.sampled_from([ME, SECOND, THIRD])),
    st.sampled_from([ME, SECOND, THIRD]),
    st.integers(0, 3),
)
places = st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 2))


class ReplicaSetModel(RuleBasedStateMachine):
    """Topics come, change, go and come again; what is open is always what the image says."""

    @initialize()
    def begin(self) -> None:
        self.loop = VirtualLoop()
        self.ids = 0
        self.topics: dict[str, TopicImage] = {}
        self.with_log: set[str] = set()
        self.cluster = self.run(lambda: Cluster(Logs()))
        self.cluster.logs.disk.make_directories("/data")

    def teardown(self) -> None:
        if hasattr(self, "loop"):
            self.loop.close()

    def run(self, work: Callable[[], T]) -> T:
        async def in_loop() -> T:
            return work()

        return self.loop.run_until_complete(in_loop())

    def show(self) -> None:
        names: dict[UUID, str] = {topic.topic_id: name for name, topic in self.topics.items()}
        image = ClusterImage(topics=dict(self.topics), topic_names=names)
        self.run(lambda: self.cluster.show(image))

    @rule(name=st.sampled_from(["a", "b"]), partitions=st.lists(states, min_size=1, max_size=3))
    def make(self, name: str, partitions: list[PartitionImage]) -> None:
        """Also in the place of one that is there: it was deleted and made again between two images."""
        self.ids += 1
        self.with_log = {each for each in self.with_log if not each.startswith(f"{name}-")}
        self.topics[name] = TopicImage(name, TopicId(UUID(int=self.ids)), tuple(partitions))
        self.show()

    @rule(name=st.sampled_from(["a", "b"]))
    def delete(self, name: str) -> None:
        self.with_log = {each for each in self.with_log if not each.startswith(f"{name}-")}
        if self.topics.pop(name, None) is not None:
            self.show()

    @rule(changes=st.dictionaries(places, states, min_size=1, max_size=3))
    def change(self, changes: dict[tuple[str, int], PartitionImage]) -> None:
        for (name, index), state in changes.items():
            topic = self.topics.get(name)
            if topic is not None and index < len(topic.partitions):
                changed = list(topic.partitions)
                changed[index] = state
                self.topics[name] = topic._replace(partitions=tuple(changed))
                if ME not in state.replicas:
                    self.with_log.discard(f"{name}-{index}")
        self.show()

    @rule(place=places)
    def find(self, place: tuple[str, int]) -> None:
        name, index = place
        found = self.run(lambda: self.cluster.replicas.find(name, index))
        topic = self.topics.get(name)
        if topic is None or index >= len(topic.partitions):
            assert found is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif ME not in topic.partitions[index].replicas:
            assert found is ErrorCode.NOT_LEADER_OR_FOLLOWER
        else:
            assert isinstance(found, Partition)
            self.with_log.add(f"{name}-{index}")

    @invariant()
    def what_is_open_is_what_the_image_says(self) -> None:
        if not hasattr(self, "cluster"):
            return
        for partition in self.cluster.replicas:
            name, index = partition.topic_partition
            topic = self.topics[name]
            state = topic.partitions[index]
            assert partition.topic_id == partition.log.topic_id == topic.topic_id
            leads = state.leader == ME
            assert partition.role == (
                Leader(state.leader_epoch) if leads else Follower(state.leader_epoch, state.leader)
            )
            assert (partition.in_sync.isr, partition.in_sync.replicas) == (state.isr, state.replicas)
        assert {str(each.topic_partition) for each in self.cluster.replicas} == self.with_log
        assert set(self.cluster.logs.disk.list("/data")) == self.with_log


TestReplicaSetModel = ReplicaSetModel.TestCase
TestReplicaSetModel.settings = settings(max_examples=50, stateful_step_count=25, deadline=None)
