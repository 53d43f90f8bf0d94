"""Which batches of a leader's answer a follower stores."""

from riverlog.model.ids import LeaderEpoch
from riverlog.records.batch import patch
from riverlog.records.builder import build_batch
from riverlog.replication.following.batches import CheckedBatches, check_batches


def batch(base_offset: int, *values: bytes, epoch: int = 3) -> bytes:
    data = bytearray(build_batch([(1, None, value, ()) for value in values]))
    patch(data, 0, base_offset=base_offset, leader_epoch=LeaderEpoch(epoch))
    return bytes(data)


def check(data: bytes, *, end_offset: int = 10, leader_epoch: int = 3) -> CheckedBatches:
    return check_batches(
        memoryview(bytearray(data)), end_offset=end_offset, leader_epoch=LeaderEpoch(leader_epoch)
    )


def offsets(checked: CheckedBatches) -> list[int]:
    return [] if checked.good is None else [header.base_offset for _, header in checked.good.batches]


def test_batches_that_go_on_at_the_end_are_taken_also_over_gaps() -> None:
    checked = check(batch(10, b"a", b"b") + batch(12, b"c", epoch=2) + batch(40, b"d"))
    assert offsets(checked) == [10, 12, 40]
    assert checked.bad is None
    assert checked.good is not None
    assert checked.good.record_count == 4


def test_a_batch_that_is_cut_off_is_left_for_the_next_answer() -> None:
    whole = batch(10, b"a")
    checked = check(whole + batch(11, b"b")[:-1])
    assert offsets(checked) == [10]
    assert checked.bad is None
    assert checked.good is not None
    assert bytes(checked.good.data) == whole
    assert check(whole[:-1]) == CheckedBatches(None, None)
    assert check(b"") == CheckedBatches(None, None)


def test_a_flipped_bit_is_not_stored_and_what_comes_before_it_is() -> None:
    damaged = bytearray(batch(11, b"bbbb"))
    damaged[-3] ^= 1
    checked = check(batch(10, b"a") + bytes(damaged) + batch(12, b"c"))
    assert offsets(checked) == [10]
    assert checked.bad is not None
    assert checked.bad.offset == 11
    assert "CRC" in checked.bad.reason


def test_a_batch_of_a_later_epoch_than_was_asked_under_is_not_stored() -> None:
    checked = check(batch(10, b"a") + batch(11, b"b", epoch=4))
    assert offsets(checked) == [10]
    assert checked.bad is not None
    assert checked.bad.offset == 11
    assert "epoch 4" in checked.bad.reason


def test_offsets_that_do_not_ascend_are_not_stored() -> None:
    checked = check(batch(10, b"a", b"b") + batch(11, b"c"))
    assert offsets(checked) == [10]
    assert checked.bad is not None
    assert checked.bad.offset == 12
    assert check(batch(8, b"a", b"b")).bad is not None  # It ends before the log does.


def test_the_first_batch_may_begin_before_the_end_that_it_goes_past() -> None:
    assert offsets(check(batch(9, b"a", b"b"))) == [9]


def test_what_is_no_batch_is_not_stored() -> None:
    garbage = bytearray(batch(11, b"b"))
    garbage[16] = 1  # The magic.
    checked = check(batch(10, b"a") + bytes(garbage))
    assert offsets(checked) == [10]
    assert checked.bad is not None
    assert checked.bad.offset == 11
