"""Batches of a producer stand in a partition in the order of their sequences, each once (I5, I6).

Held against the ledger alone, so that what the broker remembers of its producers does not count.
"""

from typing import Final, NamedTuple

from riverlog.records.batch import BatchHeader
from riverlog.testing.simulation.checks.ledger import CommittedBatch, Ledger, PartitionLedger
from riverlog.testing.simulation.violations import Violation

_SEQUENCES: Final = 1 << 31
_NONE_YET: Final = -1


class _Last(NamedTuple):
    epoch: int
    sequence: int


class SequenceCheck:
    def __init__(self, ledger: Ledger) -> None:
        self._last: dict[PartitionLedger, dict[int, _Last]] = {}
        ledger.on_commit.append(self._on_commit)
        ledger.on_cut.append(self._on_cut)

    def _on_commit(self, ledger: PartitionLedger, batch: CommittedBatch) -> None:
        header = batch.header
        if header.producer_id < 0:
            return
        producers = self._last.setdefault(ledger, {})
        last = producers.get(header.producer_id)
        if last is not None:
            _check(ledger, header, last)
        if header.is_control or header.base_sequence < 0:
            if last is None or header.producer_epoch > last.epoch:
                producers[header.producer_id] = _Last(header.producer_epoch, _NONE_YET)
        else:
            producers[header.producer_id] = _Last(header.producer_epoch, header.last_sequence)

    def _on_cut(self, ledger: PartitionLedger) -> None:
        self._last.pop(ledger, None)
        for batch in ledger.batches:
            self._on_commit(ledger, batch)


def _check(ledger: PartitionLedger, header: BatchHeader, last: _Last) -> None:
    who = f"{ledger}: producer {header.producer_id}, epoch {header.producer_epoch}"
    if header.producer_epoch < last.epoch:
        raise Violation("I5", f"{who} writes at {header.base_offset} after epoch {last.epoch}")
    if header.is_control or header.base_sequence < 0:
        return
    is_same_epoch = header.producer_epoch == last.epoch
    expected = (last.sequence + 1) % _SEQUENCES if is_same_epoch else 0
    if header.base_sequence == expected:
        return
    what = f"{who} has sequence {header.base_sequence} at {header.base_offset}, {expected} comes next"
    raise Violation("I6" if is_same_epoch and header.base_sequence < expected else "I5", what)
