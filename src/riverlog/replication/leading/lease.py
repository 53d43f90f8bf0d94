"""How long this broker may rely on being the leader of what it leads without anybody's confirmation.

The metadata store keeps a broker's session for its time-out after the last answer, and until then elects
nobody in its place. After that, by the broker's own clock, somebody else may lead (I17). A session that was
lost says so too, also when the next one is there at once: until the image shows the broker registered anew,
its roles are those of a session that is over. Asked for at the moment of need, so that a process that was
stopped finds out before it answers anything.
"""

from riverlog.model.clock import Clock
from riverlog.model.ids import NodeId
from riverlog.model.metadata_store import MetadataStore, SessionState
from riverlog.replication.leading.standing import Standing


class Lease:
    def __init__(
        self, store: MetadataStore, standing: Standing, node_id: NodeId, clock: Clock, timeout_s: float
    ) -> None:
        self._store = store
        self._standing = standing
        self._node_id = node_id
        self._clock = clock
        self.timeout_s = timeout_s
        """Of a session."""
        self._lost: int | None = None
        """The registration that ended with a session, until there is another."""
        self._watching = store.watch_session(self._on_session)

    def now_s(self) -> float:
        return self._clock.monotonic_s()

    @property
    def remaining_s(self) -> float:
        """How much longer it lasts if the store does not answer any more."""
        return max(self._store.lease_until_s - self.now_s(), 0.0) if self._is_registered() else 0.0

    def is_held(self) -> bool:
        return self.remaining_s > 0.0

    def close(self) -> None:
        self._watching.stop()

    def _is_registered(self) -> bool:
        if self._lost is not None:
            me = self._standing.brokers.get(self._node_id)
            if me is None or me.epoch == self._lost:
                return False
            self._lost = None
        return True

    def _on_session(self, state: SessionState) -> None:
        me = self._standing.brokers.get(self._node_id)
        if state is SessionState.LOST and me is not None:
            self._lost = me.epoch
