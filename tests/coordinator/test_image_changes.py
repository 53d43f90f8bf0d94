"""Which changes of the cluster the shards of groups are asked about."""

import pytest

from riverlog.coordinator.groups.coordinator import GroupCoordinator
from riverlog.coordinator.groups.shard import GroupShard
from riverlog.coordinator.runtime.effects import Effects
from riverlog.metadata.delta import ImageDelta
from riverlog.metadata.image import ClusterImage, ConfigResource, ResourceType
from riverlog.model.config.group_config import GroupConfig
from riverlog.model.internal_topics import OFFSETS_TOPIC
from tests.coordinator.hosting import Cluster, image, read_now
from tests.virtual_time import LoopClock, run_virtually


def with_configs(base: ClusterImage, resource_type: ResourceType) -> ClusterImage:
    return ClusterImage(
        brokers=base.brokers,
        topics=base.topics,
        topic_names=base.topic_names,
        configs={ConfigResource(resource_type, "t"): {"name": "value"}},
    )


def with_isr(base: ClusterImage, topic: str) -> ClusterImage:
    changed = base.topics[topic]
    partitions = tuple(each._replace(isr=each.replicas) for each in changed.partitions)
    return ClusterImage(
        brokers=base.brokers,
        topics={**base.topics, topic: changed._replace(partitions=partitions)},
        topic_names=base.topic_names,
    )


def test_shards_decide_on_topics_that_come_go_and_grow_and_on_no_change_of_an_isr(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[set[str]] = []
    on_image = GroupShard.on_image

    def counting(self: GroupShard, delta: ImageDelta, now_ms: int) -> Effects:
        seen.append(set(delta.resized_topics))
        return on_image(self, delta, now_ms)

    monkeypatch.setattr(GroupShard, "on_image", counting)

    async def run() -> None:
        cluster = Cluster()
        groups = GroupCoordinator(
            GroupConfig(), cluster.replicas, lambda: cluster.image, clock=LoopClock(), read=read_now
        )
        cluster.follow(groups.apply)
        small = image({OFFSETS_TOPIC: 1, "t": 1})
        cluster.show(small)
        assert groups.ask("g", lambda shard: True).result() is True
        for unchanged in (with_isr(small, "t"), with_isr(small, OFFSETS_TOPIC), small):
            cluster.show(unchanged)
        cluster.show(with_configs(small, ResourceType.TOPIC))
        assert seen == []
        cluster.show(with_configs(small, ResourceType.GROUP))
        cluster.show(image({OFFSETS_TOPIC: 1, "t": 2}))
        cluster.show(image({OFFSETS_TOPIC: 1, "t": 2, "u": 1}))
        cluster.show(image({OFFSETS_TOPIC: 1, "u": 1}))
        assert seen == [set(), {"t"}, {"u"}, {"t"}]
        await groups.close()

    run_virtually(run)
