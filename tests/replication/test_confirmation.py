"""What a leader may tell from memory without its session: what its followers confirm (I17)."""

import pytest

from riverlog.model.ids import LeaderEpoch
from riverlog.replication.partition import Partition
from riverlog.replication.roles import Follower
from tests.coordinator.hosting import Cluster
from tests.replication.asking import Asking
from tests.replication.replicated import ME, SECOND, THIRD, opened, partition_image
from tests.virtual_time import run_virtually
from tests.waiting import loop_turns


class GivenLease:
    timeout_s = 9.0
    held = False

    def now_s(self) -> float:
        return 100.0

    def is_held(self) -> bool:
        return self.held


def followed() -> tuple[Cluster, Partition, list[Asking]]:
    cluster = Cluster()
    partition = opened(cluster, partition_image())
    cluster.replicas.standing.lease = GivenLease()
    followers = [Asking(cluster, each) for each in (SECOND, THIRD)]
    for each in followers:
        each.ask()
        each.ask()
        partition.add_watcher(each)
    return cluster, partition, followers


def test_with_the_lease_nobody_is_asked() -> None:
    async def run() -> None:
        cluster, partition, _ = followed()
        lease = GivenLease()
        lease.held = True
        cluster.replicas.standing.lease = lease
        assert partition.tenure.when_confirmed() is None

    run_virtually(run)


def test_without_it_each_in_sync_has_to_send_a_fetch_after_the_question() -> None:
    async def run() -> None:
        _, partition, [second, third] = followed()
        answer = partition.tenure.when_confirmed()
        assert answer is not None
        assert (second.hurried, third.hurried) == (1, 1)
        for each in (second, third, second):
            assert each.is_awaited
            each.ask()  # The first of each may have been on its way.
            assert not answer.done()
        assert not second.is_awaited
        assert third.is_awaited
        third.ask()
        assert answer.result()
        assert not third.is_awaited

    run_virtually(run)


def test_what_was_asked_before_the_question_is_no_word() -> None:
    async def run() -> None:
        _, partition, followers = followed()
        answer = partition.tenure.when_confirmed()
        assert answer is not None
        followers[0].ask()
        later = partition.tenure.when_confirmed()
        assert later is not None
        for each in (followers[1], followers[1], followers[0]):
            each.ask()
        assert answer.result()
        assert not later.done(), "of one, both fetches that came since were sent before"
        followers[0].ask()
        assert later.result()

    run_virtually(run)


def test_who_is_led_by_another_is_told_so() -> None:
    async def run() -> None:
        _, partition, _ = followed()
        answer = partition.tenure.when_confirmed()
        assert answer is not None
        partition.take_role(Follower(LeaderEpoch(6), SECOND))
        assert answer.result() is False

    run_virtually(run)


@pytest.mark.parametrize("is_eligible", [True, False])
def test_where_nobody_can_confirm_it_there_is_no_wait(is_eligible: bool) -> None:
    """Another can be elected who asks for nothing."""

    async def run() -> None:
        cluster = Cluster()
        isr = [ME, SECOND] if is_eligible else [ME]
        image = partition_image(isr=isr)._replace(elr=(THIRD,))
        partition = opened(cluster, image)
        cluster.replicas.standing.lease = GivenLease()
        answer = partition.tenure.when_confirmed()
        assert answer is not None
        assert answer.result() is False

    run_virtually(run)


def test_a_wait_that_was_given_up_is_forgotten() -> None:
    async def run() -> None:
        _, partition, [second, third] = followed()
        answer = partition.tenure.when_confirmed()
        assert answer is not None
        answer.cancel()
        await loop_turns()
        second.ask()
        assert not third.is_awaited

    run_virtually(run)
