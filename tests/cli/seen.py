"""Waiting until every broker of a cluster sees what a test has done to some of them: a client may ask any."""

from collections.abc import Callable

from riverlog.metadata.image import ClusterImage
from riverlog.testing import Cluster
from riverlog.testing.cluster_broker import ClusterBroker
from tests.waiting import eventually


def until_all_see(cluster: Cluster, condition: Callable[[ClusterImage], bool]) -> None:
    """Of a cluster whose brokers are threads."""

    def all_see() -> bool:
        members = cluster.brokers.values()
        running = [each for each in members if isinstance(each, ClusterBroker) and each.is_running]
        return all(condition(each.node.image) for each in running)

    eventually(all_see, "not all brokers see it")


def is_without(topic: str, *node_ids: int) -> Callable[[ClusterImage], bool]:
    """These brokers are out of all ISRs of the topic, and others lead it."""

    def seen(image: ClusterImage) -> bool:
        return all(
            each.leader is not None and not {each.leader, *each.isr} & set(node_ids)
            for each in image.topics[topic].partitions
        )

    return seen


def has_leaderless(topic: str, count: int) -> Callable[[ClusterImage], bool]:
    """So many partitions of the topic have no leader."""
    return lambda image: sum(each.leader is None for each in image.topics[topic].partitions) == count
