"""What a broker holds, in a few lines: for `repr`, and for pytest's report when a test has failed.

Asked in process, like `records`. Long lists are cut short: who reads this wants to know why a test failed.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from riverlog.node.node import Node
from riverlog.testing.records import EARLIEST, LATEST, NodeRecords
from riverlog.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from riverlog.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from riverlog.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse

_LISTED_MAX: Final = 20
_NAMED_MAX: Final = 5
_UNITS: Final = ("bytes", "kB", "MB", "GB", "TB")
_COMMITTED_WAIT_S: Final = 2.0


class TopicAccount(NamedTuple):
    name: str
    partitions: int
    starts: Mapping[int, int]
    ends: Mapping[int, int]
    """Of the partitions that the broker leads; others cannot be asked for here."""
    size_bytes: int

    def __str__(self) -> str:
        return f"{self.name} ({_counted(self.partitions, 'partition')}, {_size(self.size_bytes)})"


async def topics_of(node: Node, records: NodeRecords) -> list[TopicAccount]:
    """All topics that tests make; the broker's own are left out."""
    described = await records.ask(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
    sizes: dict[str, int] = {}
    for directory in described.results:
        for topic in directory.topics:
            taken = sum(each.partition_size for each in topic.partitions)
            sizes[topic.name] = sizes.get(topic.name, 0) + taken
    return [
        TopicAccount(
            name,
            len(topic_image.partitions),
            await records.known_offsets(name, EARLIEST),
            await records.known_offsets(name, LATEST),
            sizes.get(name, 0),
        )
        for name, topic_image in sorted(node.image.topics.items())
        if not name.startswith("__")
    ]


async def summary(node: Node) -> str:
    """One line: topics and their sizes."""
    topics = await topics_of(node, NodeRecords(node))
    if not topics:
        return "no topics"
    named = ", ".join(map(str, topics[:_NAMED_MAX]))
    more = f" and {len(topics) - _NAMED_MAX} more" if len(topics) > _NAMED_MAX else ""
    return f"{_counted(len(topics), 'topic')}: {named}{more}"


async def account(node: Node) -> list[str]:
    """Topics with their offsets and groups with what they have committed, a line each."""
    records = NodeRecords(node)
    topics = await topics_of(node, records)
    lines = [f"topic {_topic_line(topic)}" for topic in topics[:_LISTED_MAX]]
    lines += _left_out(len(topics), "topics")
    ends = {(topic.name, index): end for topic in topics for index, end in topic.ends.items()}
    names = {topic.name for topic in topics}
    groups = (await records.ask(ListGroupsRequest(), ListGroupsResponse)).groups
    for listed in groups[:_LISTED_MAX]:
        committed = await records.committed(listed.group_id, _COMMITTED_WAIT_S)
        told = [
            f"{topic}-{index} at {offset}{_lag(offset, ends.get((topic, index)), is_told=topic in names)}"
            for (topic, index), offset in sorted(committed.items())[:_LISTED_MAX]
        ]
        members = await _members(records, listed.group_id)
        lines.append(
            f"group {listed.group_id} is {listed.group_state}{members}: "
            f"{'; '.join(told) or 'nothing committed'}"
        )
    lines += _left_out(len(groups), "groups")
    return lines or ["no topics and no groups"]


async def _members(records: NodeRecords, group_id: str) -> str:
    """Of a classic group; those of the other protocol are not worth another request."""
    [group] = (await records.ask(DescribeGroupsRequest(groups=[group_id]), DescribeGroupsResponse)).groups
    return f" with {_counted(len(group.members), 'member')}" if not group.error_code else ""


def _topic_line(topic: TopicAccount) -> str:
    if not topic.ends:
        return f"{topic}, leads none of them"
    led = ", ".join(map(str, [*topic.ends][:_LISTED_MAX]))
    leads = f"leads {led}, " if len(topic.ends) < topic.partitions else ""
    shown = [f"{index}: {topic.starts.get(index, 0)} to {end}" for index, end in topic.ends.items() if end]
    offsets = ", ".join(shown[:_LISTED_MAX]) if shown else "empty"
    return f"{topic}, {leads}offsets {offsets}"


def _lag(offset: int, end: int | None, *, is_told: bool) -> str:
    """Nothing of topics that the account leaves out, as internal ones."""
    if end is None:
        return ", led by another broker" if is_told else ""
    return f", lag {end - offset}"


def _left_out(found: int, what: str) -> Iterator[str]:
    if found > _LISTED_MAX:
        yield f"{found - _LISTED_MAX} more {what}"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _size(size_bytes: float) -> str:
    unit = 0
    while size_bytes >= 1000 and unit < len(_UNITS) - 1:
        size_bytes /= 1000
        unit += 1
    return f"{size_bytes:.0f} {_UNITS[unit]}" if unit == 0 else f"{size_bytes:.1f} {_UNITS[unit]}"
