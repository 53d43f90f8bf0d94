"""Which leader epoch began at which offset. In memory; the log writes it to `leader-epoch-checkpoint`.

Epochs and offsets both ascend. Recovery adds what the recovered batches say, so the file need not be synced
on every change but only before the recovery point moves past it.
"""

from bisect import bisect_right

from riverlog.model.ids import LeaderEpoch
from riverlog.storage.files.checkpoint import encode_epochs


class LeaderEpochs:
    __slots__ = ("_entries", "is_dirty")

    def __init__(self, entries: list[tuple[LeaderEpoch, int]] | None = None) -> None:
        self._entries = entries or []
        self.is_dirty = False

    @property
    def entries(self) -> tuple[tuple[LeaderEpoch, int], ...]:
        return tuple(self._entries)

    @property
    def latest(self) -> LeaderEpoch | None:
        return self._entries[-1][0] if self._entries else None

    @property
    def latest_start(self) -> int:
        """Where the latest epoch begins; 0 where there is none."""
        return self._entries[-1][1] if self._entries else 0

    def assign(self, epoch: LeaderEpoch, start_offset: int) -> None:
        """An epoch's batches begin at `start_offset`. Anything that contradicts it was truncated away."""
        if epoch < 0 or (self._entries and epoch <= self._entries[-1][0]):
            return
        while self._entries and self._entries[-1][1] >= start_offset:
            self._entries.pop()
        self._entries.append((epoch, start_offset))
        self.is_dirty = True

    def end_offset_for(self, epoch: LeaderEpoch, log_end_offset: int) -> tuple[LeaderEpoch, int] | None:
        """The largest known epoch up to `epoch` and where it ends; None when there is none that old."""
        if not self._entries:
            return None
        if epoch == self._entries[-1][0]:
            return epoch, log_end_offset
        number = bisect_right(self._entries, epoch, key=lambda entry: entry[0])
        if number == len(self._entries):
            return None  # An epoch that this log has not seen.
        if number == 0:
            # Kafka answers with the requested epoch and the start of the first one that is known.
            return epoch, self._entries[0][1]
        return self._entries[number - 1][0], self._entries[number][1]

    def epoch_for(self, offset: int) -> LeaderEpoch | None:
        number = bisect_right(self._entries, offset, key=lambda entry: entry[1])
        return self._entries[number - 1][0] if number else None

    def truncate_from_end(self, end_offset: int) -> None:
        kept = [entry for entry in self._entries if entry[1] < end_offset]
        if len(kept) != len(self._entries):
            self._entries = kept
            self.is_dirty = True

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget epochs that end at or before `start_offset`; the one in force there begins there."""
        number = bisect_right(self._entries, start_offset, key=lambda entry: entry[1])
        if number and self._entries[number - 1][1] < start_offset:
            self._entries[: number - 1] = []
            self._entries[0] = (self._entries[0][0], start_offset)
            self.is_dirty = True

    def encode(self) -> bytes:
        return encode_epochs(self._entries)
