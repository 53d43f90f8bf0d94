"""Where a follower cuts its log: by epochs, in as many steps as it takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riverlog.model.ids import LeaderEpoch
from riverlog.replication.following.truncation import gives_up_committed, offset_to_keep
from riverlog.storage.log.leader_epochs import LeaderEpochs


@pytest.mark.parametrize(
    ("own", "own_end", "epoch", "end_offset", "kept"),
    [
        ([(1, 0)], 10, 1, 7, 7),
        ([(1, 0), (3, 8)], 12, 1, 9, 8),  # The leader's epoch 1 goes further than ours does.
        ([(1, 0), (3, 8)], 12, 1, 5, 5),
        ([(1, 0), (3, 8)], 12, 2, 20, 8),  # We do not have its epoch 2, and 3 is not its.
        ([(1, 0), (3, 8), (5, 8)], 8, 3, 20, 8),  # An epoch without records ends where the log does.
        ([(4, 6)], 9, 2, 6, 6),  # All that we have is newer than anything of the leader's.
    ],
)
def test_the_end_of_the_largest_epoch_that_both_have(
    own: list[tuple[LeaderEpoch, int]], own_end: int, epoch: LeaderEpoch, end_offset: int, kept: int
) -> None:
    assert offset_to_keep(LeaderEpochs(own), own_end, epoch=epoch, end_offset=end_offset) == kept


@pytest.mark.parametrize(
    ("unclean_epoch", "followed_epoch", "may"),
    [(None, 3, False), (3, 3, False), (4, 3, True), (2, 3, False), (1, None, True), (None, None, False)],
)
def test_committed_records_go_only_for_an_unclean_election_since(
    unclean_epoch: LeaderEpoch | None, followed_epoch: LeaderEpoch | None, may: bool
) -> None:
    assert gives_up_committed(unclean_epoch, followed_epoch) is may


class _Replica:
    """The epoch of each offset, as a list."""

    def __init__(self, epochs: list[int]) -> None:
        self.epochs = epochs

    def cache(self) -> LeaderEpochs:
        cache = LeaderEpochs()
        for offset, epoch in enumerate(self.epochs):
            cache.assign(LeaderEpoch(epoch), offset)
        return cache

    def divergence(self, offset: int, last_epoch: int) -> tuple[int, int] | None:
        found = self.cache().end_offset_for(LeaderEpoch(last_epoch), len(self.epochs))
        if found is not None and found[0] == last_epoch and found[1] >= offset:
            return None
        return found


@given(
    st.lists(st.integers(1, 8), min_size=1, max_size=20).map(sorted),
    st.lists(st.integers(1, 8), max_size=20).map(sorted),
)
def test_steps_end_and_leave_a_part_of_the_leaders_log(leader: list[int], follower: list[int]) -> None:
    """Two logs with the same epoch at an offset have the same records up to there: so epochs are written."""
    common = 0
    while common < min(len(leader), len(follower)) and leader[common] == follower[common]:
        common += 1
    # After they part, no epoch is in both: each has one leader.
    follower = follower[:common] + [epoch + 100 * (epoch in leader) for epoch in follower[common:]]
    follower = sorted(follower)
    leading, following = _Replica([*leader, 1000]), _Replica(follower)
    for _ in range(len(follower) + 1):
        if not following.epochs:
            break
        diverging = leading.divergence(len(following.epochs), following.epochs[-1])
        if diverging is None:
            break
        keep = offset_to_keep(
            following.cache(), len(following.epochs), epoch=LeaderEpoch(diverging[0]), end_offset=diverging[1]
        )
        following.epochs = following.epochs[:keep]
    assert following.epochs == leading.epochs[: len(following.epochs)]
