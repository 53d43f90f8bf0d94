"""The shapes of internal topics, and those that were made with fewer replicas."""

from uuid import UUID

from riverlog.controller.internal_topics import AutomaticTopics, InternalShape
from riverlog.metadata.image import ClusterImage, PartitionImage, TopicImage
from riverlog.model.ids import LeaderEpoch, NodeId, TopicId
from riverlog.model.internal_topics import OFFSETS_TOPIC

SHAPES = {OFFSETS_TOPIC: InternalShape(2, 3)}


def made_with(*replicas: int) -> ClusterImage:
    partitions = tuple(
        PartitionImage(tuple(map(NodeId, range(count))), (NodeId(0),), NodeId(0), LeaderEpoch(0), 0)
        for count in replicas
    )
    return ClusterImage(topics={OFFSETS_TOPIC: TopicImage(OFFSETS_TOPIC, TopicId(UUID(int=1)), partitions)})


def test_a_node_that_is_alone_needs_no_other_and_a_cluster_as_many_as_are_set() -> None:
    assert AutomaticTopics(SHAPES, is_alone=True).new_topic(OFFSETS_TOPIC).replication_factor == 1
    assert AutomaticTopics(SHAPES, is_alone=False).new_topic(OFFSETS_TOPIC).replication_factor == 3


def test_a_topic_that_was_made_with_fewer_replicas_is_named_with_the_remedy() -> None:
    [said] = AutomaticTopics(SHAPES, is_alone=False).short_of_replicas(made_with(3, 1))
    assert said.startswith("__consumer_offsets has partitions with 1 of 3 replicas")
    assert "riverlog topic delete __consumer_offsets" in said


def test_nothing_is_said_of_what_is_as_it_should_be() -> None:
    topics = AutomaticTopics(SHAPES, is_alone=False)
    assert not topics.short_of_replicas(made_with(3, 3))
    assert not topics.short_of_replicas(made_with())
    assert not topics.short_of_replicas(ClusterImage())
    assert not AutomaticTopics(SHAPES, is_alone=True).short_of_replicas(made_with(1, 1))
