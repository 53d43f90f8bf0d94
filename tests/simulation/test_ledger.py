"""What the simulator takes for committed where nobody could look before some of it was deleted."""

from uuid import UUID

import pytest

from riverlog.model.ids import LeaderEpoch, TopicId
from riverlog.records.batch import patch, read_header
from riverlog.records.builder import ControlType, build_batch, build_control_batch
from riverlog.testing.simulated_disk import SimulatedDisk
from riverlog.testing.simulation.checks.ledger import CommittedBatch, Ledger, PartitionLedger
from riverlog.testing.simulation.checks.log_files import LogCursor, base_of, batches
from riverlog.testing.simulation.violations import Violation

_DIRECTORY = "/data/t-0"


def _disk_with_two_batches_of_three() -> SimulatedDisk:
    disk = SimulatedDisk()
    disk.make_directories(_DIRECTORY)
    file = disk.open(f"{_DIRECTORY}/00000000000000000000.log", create=True)
    position = 0
    for base_offset in (0, 3):
        data = bytearray(build_batch([(0, None, b"%d" % number, ()) for number in range(3)]))
        patch(data, 0, base_offset=base_offset, leader_epoch=LeaderEpoch(0))
        file.pwrite(bytes(data), position)
        position += len(data)
    file.close()
    return disk


def test_a_batch_across_the_log_start_is_committed_although_what_is_below_was_never_seen() -> None:
    disk = _disk_with_two_batches_of_three()
    ledgers = Ledger()
    ledger = ledgers.of("t", TopicId(UUID(int=7)), 0)
    ledgers.skip(ledger, 4, base_of(disk, _DIRECTORY, 4))
    for header, data in LogCursor(disk, _DIRECTORY).read(ledger.end, 6):
        ledgers.commit(ledger, header, data)
    assert ledger.end == 6
    committed = ledger.at(4)
    assert committed is not None
    assert committed.base_offset == 3


def test_what_is_committed_is_not_committed_again_by_a_batch_across_the_log_start() -> None:
    disk = _disk_with_two_batches_of_three()
    ledgers = Ledger()
    ledger = ledgers.of("t", TopicId(UUID(int=7)), 0)
    other = bytearray(build_batch([(0, None, b"other", ())] * 4))
    ledgers.commit(ledger, read_header(other), bytes(other))
    ledgers.skip(ledger, 5, base_of(disk, _DIRECTORY, 5))
    assert ledger.end == 5


def test_an_offset_that_no_batch_holds_is_where_the_log_begins() -> None:
    disk = _disk_with_two_batches_of_three()
    assert [base_of(disk, _DIRECTORY, offset) for offset in (0, 2, 3, 5, 6)] == [0, 0, 3, 3, 6]
    assert base_of(SimulatedDisk(), _DIRECTORY, 4) == 4


def test_bytes_that_are_no_batch_break_a_promise() -> None:
    """As a power cut leaves them in a file that nobody has recovered."""
    disk = _disk_with_two_batches_of_three()
    file = disk.open(f"{_DIRECTORY}/00000000000000000006.log", create=True)
    file.pwrite(bytes(100), 0)
    file.close()
    with pytest.raises(Violation, match=r"I10.*00000000000000000006\.log holds what is no batch"):
        list(batches(disk, _DIRECTORY))


@pytest.mark.parametrize("ended_by", [ControlType.COMMIT, ControlType.ABORT, None])
def test_what_a_lost_marker_had_committed_is_known_when_an_unclean_election_took_both(
    ended_by: ControlType | None,
) -> None:
    """A replica that has not heard of the election gives them to readers for a while."""
    ledger = PartitionLedger("t", TopicId(UUID(int=7)), 0)
    written = build_batch([(0, None, b"v", ())], producer_id=5, transactional=True)
    other = build_batch([(0, None, b"w", ())], base_offset=0, producer_id=5, transactional=True)
    ledger.add(CommittedBatch(read_header(written), written))
    if ended_by is not None:
        marker = bytearray(
            build_control_batch(
                ended_by, timestamp_ms=0, producer_id=5, producer_epoch=0, coordinator_epoch=0
            )
        )
        patch(marker, 0, base_offset=1, leader_epoch=LeaderEpoch(0))
        ledger.add(CommittedBatch(read_header(marker), bytes(marker)))
    assert not ledger.was_committed(read_header(written)), "it is not lost"
    ledger.cut(0)
    assert ledger.fate_of(read_header(written)) is None
    assert ledger.was_committed(read_header(written)) is (ended_by is ControlType.COMMIT)
    assert not ledger.was_committed(read_header(other)), "another batch at the same offset"
