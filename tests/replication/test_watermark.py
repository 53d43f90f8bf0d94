"""The rule for the high watermark, against its meaning: a record is committed when all in sync have it."""

from hypothesis import given
from hypothesis import strategies as st

from riverlog.model.ids import LeaderEpoch, NodeId
from riverlog.replication.leading.follower_states import FollowerFetch, FollowerStates
from riverlog.replication.leading.in_sync import InSyncReplicas
from riverlog.replication.roles import Follower, Leader, Offline, Role
from riverlog.replication.watermark import follows_log_end, high_watermark
from tests.replication.replicated import ALL, BROKER_EPOCH, ME, NOW_S, SECOND, THIRD

offsets = st.integers(0, 6)
roles = st.sampled_from([Leader(LeaderEpoch(3)), Follower(LeaderEpoch(3), SECOND), Offline(LeaderEpoch(3))])
replica_sets = st.sets(st.sampled_from([SECOND, THIRD])).map(lambda others: (ME, *sorted(others)))


@st.composite
def in_sync_replicas(draw: st.DrawFn) -> InSyncReplicas:
    replicas = draw(replica_sets)
    followers = draw(st.sets(st.sampled_from(replicas)))
    return InSyncReplicas(ME, tuple(sorted({ME, *followers})), replicas)


def ends_of(known: dict[NodeId, int]) -> FollowerStates:
    ends = FollowerStates()
    for follower, end in known.items():
        ends.note(FollowerFetch(follower, BROKER_EPOCH, LeaderEpoch(3), end, 0), NOW_S, end)
    return ends


@given(
    role=roles,
    in_sync=in_sync_replicas(),
    known=st.dictionaries(st.sampled_from([SECOND, THIRD]), offsets),
    log_end=offsets,
    current=offsets,
    flushed=st.none() | offsets,
    min_isr=st.integers(1, 4),
)
def test_a_record_is_committed_when_all_in_sync_have_it(
    role: Role,
    in_sync: InSyncReplicas,
    known: dict[NodeId, int],
    log_end: int,
    current: int,
    flushed: int | None,
    min_isr: int,
) -> None:
    current = min(current, log_end)
    mark = high_watermark(
        role, in_sync, ends_of(known), current=current, log_end=log_end, flushed=flushed, min_isr=min_isr
    )
    assert current <= mark <= log_end
    may_commit = isinstance(role, Leader) and len(in_sync.isr) >= min(min_isr, len(in_sync.replicas))
    for offset in range(current, log_end):
        everywhere = all(known.get(each, 0) > offset for each in in_sync.isr if each != ME)
        is_committed = may_commit and everywhere and (flushed is None or flushed > offset)
        assert (offset < mark) == is_committed
    if follows_log_end(role, in_sync, waits_for_disk=flushed is not None, min_isr=min_isr):
        assert mark == log_end
        assert in_sync.replicas == (ME,)


def test_a_sole_replica_of_which_more_are_asked_commits_at_once() -> None:
    sole = InSyncReplicas(ME, (ME,), (ME,))
    assert follows_log_end(Leader(LeaderEpoch(0)), sole, waits_for_disk=False, min_isr=3)
    shrunk = InSyncReplicas(ME, (ME,), ALL)
    assert not follows_log_end(Leader(LeaderEpoch(0)), shrunk, waits_for_disk=False, min_isr=1)


def test_followers_that_are_no_replicas_any_more_are_forgotten() -> None:
    ends = ends_of({SECOND: 3, THIRD: 5})
    ends.retain(InSyncReplicas(ME, (ME, THIRD), (ME, THIRD)))
    assert (ends.least([THIRD]), ends.least([SECOND]), ends.least([])) == (5, 0, None)


def test_nothing_is_committed_while_there_are_eligible_leaders_beside_the_isr() -> None:
    def mark(*, has_eligible: bool) -> int:
        return high_watermark(
            Leader(LeaderEpoch(3)),
            InSyncReplicas(ME, (ME,), (ME, SECOND), has_eligible),
            FollowerStates(),
            current=1,
            log_end=4,
            flushed=None,
            min_isr=1,
        )

    assert (mark(has_eligible=True), mark(has_eligible=False)) == (1, 4)
