"""Which batches belong to aborted transactions, and which markers are no longer needed. Pure.

Fed with the batches of a pass in order of their offsets. A marker stays as long as the pass has met a batch
of its transaction, even an emptied one: without it a reader, or a replay, would take the transaction for an
open one.
"""

import heapq
from collections.abc import Iterable

from riverlog.records.batch import BatchHeader
from riverlog.storage.files.transaction_index import AbortedTransaction
from riverlog.storage.producers.state import EndMarker


class SeenTransactions:
    __slots__ = ("_aborted", "_committed", "_met", "_waiting")

    def __init__(self) -> None:
        # By first offset: aborted transactions that the pass has not come to yet.
        self._waiting: list[tuple[int, AbortedTransaction]] = []
        self._aborted: dict[int, AbortedTransaction] = {}
        # Producers of aborted, and of other transactions of which a batch was met.
        self._met: set[int] = set()
        self._committed: set[int] = set()

    def expect(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Take the aborted transactions that touch the segments that come next."""
        known = {entry for _, entry in self._waiting}
        for entry in aborted:
            if entry not in known:
                heapq.heappush(self._waiting, (entry.first_offset, entry))

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether a data batch, the next in order, belongs to an aborted transaction."""
        self._reach(header.last_offset)
        if not header.is_transactional:
            return False
        if header.producer_id in self._aborted:
            self._met.add(header.producer_id)
            return True
        self._committed.add(header.producer_id)
        return False

    def end(self, header: BatchHeader, marker: EndMarker | None) -> tuple[bool, AbortedTransaction | None]:
        """Whether a control batch, the next in order, is done with; and its index entry if it must stay."""
        self._reach(header.last_offset)
        if header.record_count == 0:
            return True, None  # Emptied by an earlier pass.
        if marker is None:
            return False, None
        producer_id = header.producer_id
        if not marker.is_abort:
            is_met = producer_id in self._committed
            self._committed.discard(producer_id)
            return not is_met, None
        entry = self._aborted.pop(producer_id, None)
        is_met = producer_id in self._met
        self._met.discard(producer_id)
        return not is_met, entry if is_met else None

    def _reach(self, offset: int) -> None:
        while self._waiting and self._waiting[0][0] <= offset:
            _, entry = heapq.heappop(self._waiting)
            self._aborted.setdefault(entry.producer_id, entry)
