"""The port between the runtime and a shard: the state behind one partition of an internal topic.

Hard state is what the log says and changes in `replay` and `replay_end_marker` alone, so that a load rebuilds
it exactly. Soft state (waiting requests, when a member was last heard of) may change in a decision and begins
again after a load.
"""

from typing import Protocol

from riverlog.coordinator.runtime.effects import Effects, FollowUp, TimerKey
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerIdAndEpoch


class Shard(Protocol):
    def replay(
        self,
        key: bytes,
        value: bytes | None,
        *,
        offset: int,
        timestamp_ms: int,
        producer: ProducerIdAndEpoch | None,
    ) -> None:
        """Take over one record of the log. With a producer it counts only when that transaction commits.

        Never raises for a record that was written by a newer version: what it does not know it passes over.
        """
        ...

    def replay_end_marker(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
        """The transaction of this producer has ended in this partition."""
        ...

    def on_loaded(self, now_ms: int, *, may_have_lost: bool) -> Effects:
        """The log has been replayed and the shard is about to serve: set the timers it needs. A power cut
        `may_have_lost` the end of the log, and with it what was acknowledged."""
        ...

    def on_committed(self, follow_up: FollowUp, error: ErrorCode | None, now_ms: int) -> Effects:
        """The records of a decision with this follow-up are committed, or are not, for this reason."""
        ...

    def on_timer(self, key: TimerKey, now_ms: int) -> Effects:
        """A timer went off. If its records cannot be written it goes off again a little later."""
        ...
