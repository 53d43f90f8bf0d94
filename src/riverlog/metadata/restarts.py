"""What a broker does before it registers, if it may have lost data since it was last registered.

After a clean shutdown, or when only the process had ended, which the kernel's boot id shows, all that was
written is there. After a power cut the tail may be missing, and with a lost directory everything in it. Then
the broker must not be taken for one that is in sync. It ends its old registration first, so that no leader
can take it into an ISR by what it was; it leaves all ISRs and ELRs by itself, and gives up what it led; only
then it registers. Nothing here depends on what the controller does meanwhile: every write is made against
the version of the state that it was decided on.

Where it was the last in sync, it becomes the last known leader, which leads again (counted, and told), unless
its log is lost, too: then nobody leads until somebody decides what shall be given up.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple
from uuid import UUID

from riverlog.metadata import layout, payloads
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.image import ClusterImage
from riverlog.metadata.image_builder import ROOTS
from riverlog.metadata.outcomes import write_multi
from riverlog.metadata.partition_states import without_incomplete
from riverlog.metadata.payloads import PartitionNode, RegistrationNode
from riverlog.model.ids import BrokerEpoch, NodeId, TopicPartition
from riverlog.model.metadata_store import (
    BadVersionError,
    Delete,
    MetadataStore,
    NoNodeError,
    Operation,
    Set,
    Versioned,
)
from riverlog.model.metrics import Metrics

_logger = logging.getLogger(__name__)
_IN_FLIGHT_MAX: Final = 64


class FoundData(NamedTuple):
    """What a starting broker finds on its disks."""

    boot_id: str
    left_by: Mapping[UUID, BrokerEpoch | None]
    """Of each directory: the epoch of the registration under which all of it was saved, if it was."""
    has_unusable: bool
    """Some directories could not be opened, and may be again at another start."""
    holds_log: Callable[[TopicPartition], bool]

    def is_complete(self, before: RegistrationNode, epoch: BrokerEpoch) -> bool:
        """Whether what was written to these directories under the last registration is in them. One that was
        saved under a later one is complete as well: the store was restored from a backup."""
        found = [self.left_by[each] for each in before.directories if each in self.left_by]
        is_same_start = bool(self.boot_id) and self.boot_id == before.boot_id
        return is_same_start or all(left is not None and left >= epoch for left in found)

    def lacks_directory(self, before: RegistrationNode) -> bool:
        return not set(before.directories) <= self.left_by.keys()

    def may_lack_data(self, before: RegistrationNode, epoch: BrokerEpoch) -> bool:
        return self.lacks_directory(before) or not self.is_complete(before, epoch)


class TopicDemands(NamedTuple):
    min_isr: int = 1
    acks_on_disk: bool = False
    """Nothing was acknowledged before it was on disk."""


class _Change(NamedTuple):
    name: TopicPartition
    expected_version: int
    node: PartitionNode


class Restart:
    def __init__(
        self,
        store: MetadataStore,
        follower: MetadataFollower,
        node_id: NodeId,
        found: FoundData,
        demands: Callable[[ClusterImage, str], TopicDemands],
        metrics: Metrics,
    ) -> None:
        self._store, self._follower, self._node_id = store, follower, node_id
        self._found = found
        self._demands = demands
        self._unclean_restarts = metrics.counter("riverlog_unclean_restarts_total")

    def is_needed(self, known: Versioned) -> bool:
        """Whether this broker, last registered like this, has to leave ISRs before it registers again."""
        return self._found.may_lack_data(self._before(known), BrokerEpoch(known.version))

    async def leave(self, known: Versioned, alive: Versioned | None) -> None:
        """End that registration and leave what this broker may not be in any more. Raises `BadVersionError`
        or `NoNodeError` when the registration is another by now."""
        before = self._before(known)
        is_complete = self._found.is_complete(before, BrokerEpoch(known.version))
        is_short = self._found.lacks_directory(before)
        gone = [] if alive is None else [Delete(layout.broker(self._node_id), alive.version)]
        fence: Operation = Set(layout.registration(self._node_id), known.data, known.version)
        await write_multi(self._store, [fence, *gone])
        _logger.warning(
            "Broker %d may have lost data since it was registered last (%s); it leaves all in-sync replicas "
            "and copies what it lacks",
            self._node_id,
            "a data directory is missing" if is_short else "no clean shutdown",
        )
        await self._store.sync()
        await self._follower.refresh(ROOTS)
        last: Counter[str] = Counter()
        lost: Counter[str] = Counter()
        while concerned := list(self._concerned(is_complete=is_complete, is_short=is_short)):
            for start in range(0, len(concerned), _IN_FLIGHT_MAX):
                some = concerned[start : start + _IN_FLIGHT_MAX]
                for change, is_made in zip(some, await asyncio.gather(*map(self._write, some)), strict=True):
                    if is_made and not change.node.isr:
                        (last if change.node.last_known_elr else lost)[change.name.topic] += 1
            await self._follower.refresh(layout.partition_state(*each.name) for each in concerned)
        self._tell(last, lost)

    def _before(self, known: Versioned) -> RegistrationNode:
        return payloads.decode_registration(layout.registration(self._node_id), known.data)

    def _concerned(self, *, is_complete: bool, is_short: bool) -> Iterator[_Change]:
        image = self._follower.image
        for topic in image.topics.values():
            for index, partition in enumerate(topic.partitions):
                if self._node_id not in partition.isr and self._node_id not in partition.elr:
                    continue
                name = TopicPartition(topic.name, index)
                # A partition that nobody has written to has no log; neither has one in a lost directory.
                is_lost = is_short and not self._found.holds_log(name)
                if is_complete and not is_lost:
                    continue
                demands = self._demands(image, topic.name)
                node = without_incomplete(partition, self._node_id, demands.min_isr, has_log=not is_lost)
                if not node.isr and (self._found.has_unusable if is_lost else demands.acks_on_disk):
                    continue  # All that was acknowledged is there, or may be once its directory is.
                yield _Change(name, partition.partition_epoch, node)

    async def _write(self, change: _Change) -> bool:
        """Whether it was made; what somebody has changed meanwhile is decided on again."""
        path = layout.partition_state(*change.name)
        state = Set(path, payloads.encode_partition(change.node), change.expected_version)
        try:
            await write_multi(self._store, [state])
        except (BadVersionError, NoNodeError):
            return False
        return True

    def _tell(self, last: Mapping[str, int], lost: Mapping[str, int]) -> None:
        for topic, count in sorted(last.items()):
            self._unclean_restarts.add(count)
            _logger.warning(
                "Topic %s: the only replicas in sync of %d partitions were not shut down cleanly. What was "
                "acknowledged last may be lost; with riverlog.acks.fsync=true it would not be",
                topic,
                count,
            )
        for topic, count in sorted(lost.items()):
            _logger.error(
                "Topic %s: the only replicas in sync of %d partitions are lost. Nobody leads them until the "
                "directory is restored, or leaders are elected uncleanly: riverlog cluster elect",
                topic,
                count,
            )
