"""What a log remembers of its producers as long as the process lives, beside what a replay rebuilds. Pure.

A guard stands for the question, asked elsewhere, whether a producer's first batch belongs to an open
transaction (KIP-890): the transaction may end while the answer is on its way, so every marker takes the guard
away, and an answer counts only while it is there. And where a marker stands already when a later coordinator
comes with it, nothing is written, but a late marker of the earlier coordinator must not be taken any more.
"""


class VerificationGuard:
    __slots__ = ("askers",)

    def __init__(self) -> None:
        self.askers = 0


class ProducerGuards:
    __slots__ = ("_coordinator_epochs", "_guards")

    def __init__(self) -> None:
        self._guards: dict[int, VerificationGuard] = {}
        self._coordinator_epochs: dict[int, int] = {}

    def __len__(self) -> int:
        """Questions under way."""
        return sum(guard.askers for guard in self._guards.values())

    @property
    def holds_anything(self) -> bool:
        """Which would be lost if the log were closed."""
        return bool(self._guards or self._coordinator_epochs)

    def begin_question(self, producer_id: int) -> VerificationGuard:
        """Before it is asked. Those who ask at the same time share a guard."""
        guard = self._guards.get(producer_id)
        if guard is None:
            guard = self._guards[producer_id] = VerificationGuard()
        guard.askers += 1
        return guard

    def end_question(self, producer_id: int, guard: VerificationGuard) -> bool:
        """Whether the answer counts: no marker came between. To be called once for each question."""
        guard.askers -= 1
        is_there = self._guards.get(producer_id) is guard
        if is_there and not guard.askers:
            del self._guards[producer_id]
        return is_there

    def on_marker(self, producer_id: int) -> None:
        """A marker is to be written, or stands already: answers to what was asked before do not count."""
        self._guards.pop(producer_id, None)

    def note_coordinator(self, producer_id: int, epoch: int) -> None:
        """A coordinator of this epoch has found its marker standing."""
        self._coordinator_epochs[producer_id] = max(epoch, self.coordinator_epoch(producer_id))

    def coordinator_epoch(self, producer_id: int) -> int:
        return self._coordinator_epochs.get(producer_id, -1)

    def expire(self) -> None:
        """Questions whose askers are gone; one that is under way is asked again."""
        self._guards.clear()

    def forget(self, producer_id: int) -> None:
        """A marker was written, which says who the coordinator is; or the producer is known no more."""
        self._guards.pop(producer_id, None)
        self._coordinator_epochs.pop(producer_id, None)
