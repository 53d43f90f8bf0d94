"""Logs here that go beyond the metadata: they have records of a later leader epoch than it knows of, or of
another leader under the epoch that it gives to one.

So it is once the metadata store was restored from a backup and the newest state is lost. Under such a state
this node neither leads nor follows: what the state has for a leader may lack what was committed since. Who
leads then is decided by how far all replicas are (`log_end_reports`, `controller.decisions.older_states`).
"""

import logging
from collections.abc import Callable, Iterator
from typing import Final

from riverlog.model.ids import LeaderEpoch, TopicPartition

_logger = logging.getLogger(__name__)
_NAMED_MAX: Final = 10


class LogsAhead:
    def __init__(self) -> None:
        self._found: dict[TopicPartition, LeaderEpoch] = {}
        """With the leader epoch of the metadata."""
        self._named = 0
        self.on_change: Callable[[], None] = lambda: None

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(tuple(self._found))

    def is_noted(self, partition: TopicPartition, known_epoch: LeaderEpoch) -> bool:
        return self._found.get(partition) == known_epoch

    def note(self, partition: TopicPartition, log_epoch: LeaderEpoch, known_epoch: LeaderEpoch) -> None:
        is_new = partition not in self._found
        self._found[partition] = known_epoch
        if is_new:
            self._tell(partition, log_epoch, known_epoch)
            self.on_change()

    def forget(self, partition: TopicPartition) -> None:
        if partition in self._found:
            del self._found[partition]
            self.on_change()

    def _tell(self, partition: TopicPartition, log_epoch: LeaderEpoch, known_epoch: LeaderEpoch) -> None:
        """Each of the first few, and that there are more."""
        self._named += 1
        if self._named <= _NAMED_MAX:
            _logger.error(
                "%s has records of leader epoch %d of which the metadata, at leader epoch %d, does not "
                "know, as after it was restored from an older backup. Nobody leads the partition until all "
                "its replicas have told how far they are; then the one that is furthest does. If one of "
                "them is gone for good: riverlog cluster elect --unclean",
                partition,
                log_epoch,
                known_epoch,
            )
        elif self._named == _NAMED_MAX + 1:
            _logger.error("More logs have records of later leader epochs than the metadata knows of")
