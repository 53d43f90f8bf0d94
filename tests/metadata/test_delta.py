"""What differs between two images, and that the builder finds it without comparing everything."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riverlog.metadata import image_builder, layout, payloads
from riverlog.metadata.delta import ImageDelta, PartitionChange, delta_between
from riverlog.metadata.image import (
    ClusterImage,
    ConfigResource,
    PartitionImage,
    ResourceType,
    TopicImage,
)
from riverlog.metadata.image_builder import ImageBuilder, Tree
from riverlog.model.ids import LeaderEpoch, NodeId, TopicId
from riverlog.model.metadata_store import Versioned

ONE = NodeId(1)
STATE = payloads.PartitionNode(ONE, LeaderEpoch(3), (ONE,), 1)


def node(data: bytes, version: int = 0) -> Versioned:
    return Versioned(data, version)


def topic_tree(name: str, topic_id: int, states: list[payloads.PartitionNode]) -> dict[str, Versioned]:
    replicas = ((ONE,),) * len(states)
    tree = {
        layout.topic(name): node(
            payloads.encode_topic(payloads.TopicNode(TopicId(UUID(int=topic_id)), replicas))
        )
    }
    for index, state in enumerate(states):
        tree[layout.partition_state(name, index)] = node(payloads.encode_partition(state), state.leader_epoch)
    return tree


def built(base: ClusterImage, parts: dict[str, Tree]) -> ImageDelta | None:
    builder = ImageBuilder(base)
    for part, tree in parts.items():
        builder.apply(part, tree)
    return builder.build()


def image_after(parts: dict[str, Tree], base: ClusterImage | None = None) -> ClusterImage:
    delta = built(base or ClusterImage(), parts)
    assert delta is not None
    return delta.new


def test_a_created_topic_names_no_partition_of_its_own() -> None:
    delta = built(ClusterImage(), {layout.topic("t"): topic_tree("t", 5, [STATE, STATE])})
    assert delta is not None
    assert (set(delta.created), dict(delta.deleted), dict(delta.partitions)) == ({"t"}, {}, {})
    assert delta.resized_topics == {"t"}


def test_a_topic_made_again_under_its_name_is_deleted_and_created() -> None:
    base = image_after({layout.topic("t"): topic_tree("t", 5, [STATE])})
    delta = built(base, {layout.topic("t"): topic_tree("t", 6, [STATE])})
    assert delta is not None
    assert delta.deleted["t"].topic_id == UUID(int=5)
    assert delta.created["t"].topic_id == UUID(int=6)
    assert not delta.partitions


def test_a_change_of_the_isr_names_that_partition_and_resizes_nothing() -> None:
    base = image_after({layout.topic("t"): topic_tree("t", 5, [STATE] * 3)})
    path = layout.partition_state("t", 1)
    shrunk = STATE._replace(isr=())
    delta = built(base, {path: {path: node(payloads.encode_partition(shrunk), 4)}})
    assert delta is not None
    after = PartitionImage((ONE,), (), ONE, LeaderEpoch(3), 4, controller_epoch=1)
    assert delta.partitions == {"t": (PartitionChange(1, base.topics["t"].partitions[1], after),)}
    assert not delta.resized_topics
    assert not delta.created
    assert not delta.deleted
    assert not delta.configs


def test_added_partitions_have_no_before_and_resize_their_topic() -> None:
    base = image_after({layout.topic("t"): topic_tree("t", 5, [STATE])})
    delta = built(base, {layout.topic("t"): topic_tree("t", 5, [STATE, STATE])})
    assert delta is not None
    [change] = delta.partitions["t"]
    assert (change.partition, change.before) == (1, None)
    assert delta.resized_topics == {"t"}


def test_brokers_and_configs_are_named() -> None:
    base = ClusterImage(configs={ConfigResource(ResourceType.TOPIC, "old"): {"retention.ms": "1"}})
    registered = payloads.BrokerNode({}, {}, None)
    delta = built(
        base,
        {
            layout.broker(NodeId(2)): {layout.broker(NodeId(2)): node(payloads.encode_broker(registered, 0))},
            f"{layout.TOPIC_CONFIGS}/old": {},
            f"{layout.TOPIC_CONFIGS}/t": {
                f"{layout.TOPIC_CONFIGS}/t": node(payloads.encode_config({"retention.ms": "5"}))
            },
        },
    )
    assert delta is not None
    assert (set(delta.brokers_added), set(delta.brokers_removed)) == ({2}, set())
    assert {resource.name for resource in delta.configs} == {"old", "t"}
    assert delta.changes_configs_of(ResourceType.TOPIC)
    assert not delta.changes_configs_of(ResourceType.GROUP, ResourceType.BROKER)
    back = built(delta.new, {layout.broker(NodeId(2)): {}})
    assert back is not None
    assert (set(back.brokers_added), set(back.brokers_removed)) == (set(), {2})


def test_what_is_read_again_and_is_the_same_makes_no_delta() -> None:
    parts: dict[str, Tree] = {layout.topic("t"): topic_tree("t", 5, [STATE])}
    assert built(image_after(parts), parts) is None


def test_many_states_of_one_topic_copy_its_partitions_once(monkeypatch: pytest.MonkeyPatch) -> None:
    base = image_after({layout.topic("t"): topic_tree("t", 5, [STATE] * 500)})
    made: list[str] = []

    def counting(
        name: str, topic_id: TopicId, partitions: tuple[PartitionImage, ...], made_at: int | None
    ) -> TopicImage:
        made.append(name)
        return TopicImage(name, topic_id, partitions, made_at)

    monkeypatch.setattr(image_builder, "TopicImage", counting)
    moved = STATE._replace(leader_epoch=LeaderEpoch(4))
    paths = [layout.partition_state("t", index) for index in range(500)]
    delta = built(base, {path: {path: node(payloads.encode_partition(moved), 1)} for path in paths})
    assert delta is not None
    assert len(delta.partitions["t"]) == 500
    assert made == ["t"]


def test_a_topic_read_as_a_whole_is_not_set_back_by_a_state_read_before_it() -> None:
    base = image_after({layout.topic("t"): topic_tree("t", 5, [STATE])})
    path = layout.partition_state("t", 0)
    older = {path: node(payloads.encode_partition(STATE._replace(leader_epoch=LeaderEpoch(4))), 4)}
    newer = topic_tree("t", 5, [STATE._replace(leader_epoch=LeaderEpoch(5))])
    delta = built(base, {path: older, layout.topic("t"): newer})
    assert delta is not None
    assert delta.new.topics["t"].partitions[0].leader_epoch == 5


states = st.builds(
    lambda leader, epoch: payloads.PartitionNode(leader, epoch, (ONE,), 1),
    st.sampled_from([ONE, None]),
    st.integers(0, 2),
)
sizes = st.lists(states, min_size=2, max_size=4)


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 2), sizes, st.booleans()), max_size=8))
def test_the_builder_finds_what_a_comparison_of_everything_finds(
    steps: list[tuple[str, int, list[payloads.PartitionNode], bool]],
) -> None:
    """Topics come, go, are made again, and single states change; several of them in one image."""
    image = ClusterImage()
    known: dict[str, tuple[int, int]] = {}
    builder = ImageBuilder(image)
    for name, topic_id, partitions, ends_image in steps:
        path = layout.topic(name)
        former = known.get(name)
        if topic_id == 0:
            known.pop(name, None)
            builder.apply(path, {})
        elif former is not None and former[0] == topic_id:
            state_path = layout.partition_state(name, 1)
            builder.apply(state_path, {state_path: node(payloads.encode_partition(partitions[1]), 7)})
        else:
            known[name] = (topic_id, len(partitions))
            builder.apply(path, topic_tree(name, topic_id, partitions))
        if ends_image:
            delta = builder.build()
            if delta is not None:
                assert delta == delta_between(image, delta.new)
                image = delta.new
            builder = ImageBuilder(image)
