"""What is decided does not follow the order of a set, which is another in every process."""

import subprocess
import sys

_DECISION = """
from uuid import UUID
from riverlog.coordinator.groups.consumer.topics import sizes_of
from riverlog.metadata.image import ClusterImage, TopicImage

names = [f"topic-{number}" for number in range(50)]
topics = {name: TopicImage(name, UUID(int=number), ()) for number, name in enumerate(names)}
print([topic_id.int for topic_id in sizes_of(frozenset(names), ClusterImage(topics=topics))])
"""


def decided(seed: int) -> str:
    return subprocess.run(
        [sys.executable, "-c", _DECISION],
        env={"PYTHONHASHSEED": str(seed)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_the_topics_of_a_group_come_to_the_assignor_in_the_same_order_in_every_process() -> None:
    assert decided(1) == decided(2)
