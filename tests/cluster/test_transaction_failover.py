"""Transactions go on at another coordinator when theirs is killed, in whichever state they are."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.model.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from riverlog.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from riverlog.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from tests.cluster.nodes import ClusterNode, NodeCluster, run
from tests.cluster.transactor import (
    Transactor,
    contents,
    coordinator_of,
    make_topics,
    markers_in,
    name_at,
    open_in,
)
from tests.waiting import until_told

# Partition 1 of `orders` is on broker 2 and 2 on 3, the coordinator on 1; internal topics are on all of them.
NONE: Final = ErrorCode.NONE
SETTINGS: Final = {
    "offsets_topic_replication_factor": "3",
    "transaction_state_log_replication_factor": "3",
    "transaction_state_log_min_isr": "2",
    "transaction_abort_timed_out_transaction_cleanup_interval_ms": "100",
}
ELSEWHERE: Final = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
VERSIONS: Final = pytest.mark.parametrize("version", [1, 2])


async def begun(cluster: NodeCluster, version: int = 2) -> Transactor:
    await make_topics(cluster)
    transactor = Transactor(cluster, name_at(cluster, TRANSACTIONS_TOPIC, 1), version=version)
    assert await transactor.init() is NONE
    return transactor


async def write(transactor: Transactor, *partitions: int) -> None:
    """One record in each of them."""
    if transactor.version == 1:
        assert await transactor.add(*partitions) is NONE
    for partition in partitions:
        await succeed(lambda: transactor.write(partition, b"v"))  # noqa: B023


async def succeed(ask: Callable[[], Awaitable[ErrorCode]]) -> None:
    """Asked again as clients do, until it is done."""

    async def look() -> bool:
        error = await ask()
        assert error is NONE or error.is_retriable or error is ErrorCode.CONCURRENT_TRANSACTIONS, error
        return error is NONE

    await until_told(look, "it was not done")


async def replace_coordinator(cluster: NodeCluster, transactor: Transactor) -> None:
    """Kill the one that is; return when the next is known to all."""
    before = transactor.coordinator.node_id
    await cluster[before].kill()
    await cluster.until_all_see(
        lambda image: (
            before not in image.brokers
            and coordinator_of(cluster, TRANSACTIONS_TOPIC, transactor.name) not in (None, before)
        )
    )


@VERSIONS
def test_a_producer_that_has_done_nothing_yet_goes_on(version: int) -> None:
    async def scenario(cluster: NodeCluster) -> None:
        transactor = await begun(cluster, version)
        await replace_coordinator(cluster, transactor)
        await transactor.until("Empty")
        await write(transactor, 1, 2)
        await succeed(lambda: transactor.end(commit=True))
        await transactor.until("CompleteCommit")
        for at in (1, 2):
            assert contents(cluster, at) == (2, 2, 2)
            assert markers_in(cluster, at) == [(True, transactor.coordinator_epoch)]

    run(scenario, 3, **SETTINGS)


@VERSIONS
@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_that_is_open_is_ended_by_its_producer(version: int, commit: bool) -> None:
    async def scenario(cluster: NodeCluster) -> None:
        transactor = await begun(cluster, version)
        group = name_at(cluster, OFFSETS_TOPIC, 2)
        await write(transactor, 1, 2)
        await succeed(lambda: transactor.commit_offset(group, 7))
        await replace_coordinator(cluster, transactor)
        await transactor.until("Ongoing")
        await write(transactor, 1)
        await succeed(lambda: transactor.end(commit=commit))
        await transactor.until("CompleteCommit" if commit else "CompleteAbort")
        assert [contents(cluster, at) for at in (1, 2)] == [(3, 3, 3), (2, 2, 2)]
        for at in (1, 2):
            assert markers_in(cluster, at) == [(commit, transactor.coordinator_epoch)]
        assert await transactor.committed_offset(group) == (7 if commit else -1)

    run(scenario, 3, **SETTINGS)


@VERSIONS
@pytest.mark.parametrize("commit", [True, False])
def test_an_end_that_was_decided_is_carried_out_once(version: int, commit: bool) -> None:
    async def scenario(cluster: NodeCluster) -> None:
        transactor = await begun(cluster, version)
        await write(transactor, 1, 2)
        first, me = transactor.coordinator_epoch, transactor.me
        await cluster[3].kill()
        assert await transactor.end(commit=commit) is NONE
        await cluster.until(lambda: not open_in(cluster, 1))
        assert await transactor.state() == ("PrepareCommit" if commit else "PrepareAbort")
        await cluster[1].kill()
        await cluster[3].start()
        await cluster.until_all_see(
            lambda image: (
                len(image.brokers) == 2
                and coordinator_of(cluster, TRANSACTIONS_TOPIC, transactor.name) not in (None, 1)
            )
        )
        await transactor.until("CompleteCommit" if commit else "CompleteAbort")
        assert [contents(cluster, at) for at in (1, 2)] == [(2, 2, 2)] * 2
        assert markers_in(cluster, 1) == [(commit, first)]
        [(was_commit, epoch)] = markers_in(cluster, 2)
        assert was_commit is commit
        assert epoch > first
        transactor.me = me  # As one that has got no answer to its first request.
        await succeed(lambda: transactor.end(commit=commit))
        assert [contents(cluster, at) for at in (1, 2)] == [(2, 2, 2)] * 2

    run(scenario, 3, **SETTINGS)


@VERSIONS
@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_that_has_ended_is_followed_by_the_next(version: int, commit: bool) -> None:
    async def scenario(cluster: NodeCluster) -> None:
        transactor = await begun(cluster, version)
        await write(transactor, 1)
        assert await transactor.end(commit=commit) is NONE
        await transactor.until("CompleteCommit" if commit else "CompleteAbort")
        await replace_coordinator(cluster, transactor)
        await transactor.until("CompleteCommit" if commit else "CompleteAbort")
        await write(transactor, 1)
        await succeed(lambda: transactor.end(commit=True))
        await transactor.until("CompleteCommit")
        assert contents(cluster, 1) == (4, 4, 4)
        assert [was_commit for was_commit, _ in markers_in(cluster, 1)] == [commit, True]

    run(scenario, 3, **SETTINGS)


def test_a_transaction_that_nobody_ends_is_aborted_in_its_time() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        transactor = await begun(cluster)
        assert await transactor.init(timeout_ms=1_000) is NONE
        await write(transactor, 1, 2)
        await replace_coordinator(cluster, transactor)
        await transactor.until("CompleteAbort")
        for at in (1, 2):
            assert contents(cluster, at) == (2, 2, 2)
            assert markers_in(cluster, at) == [(False, transactor.coordinator_epoch)]
        assert await transactor.write(1, b"late") is not NONE

    run(scenario, 3, **SETTINGS)


@pytest.mark.parametrize("commit", [True, False])
def test_a_prepared_transaction_waits_for_its_owner(commit: bool) -> None:
    async def scenario(cluster: NodeCluster) -> None:
        transactor = await begun(cluster)
        assert await transactor.init_two_phase() is NONE
        await write(transactor, 1, 2)
        prepared = transactor.me
        await replace_coordinator(cluster, transactor)
        await transactor.until("Ongoing")
        await succeed(lambda: transactor.init_two_phase(keep_prepared=True))
        assert transactor.ongoing == prepared
        await succeed(lambda: transactor.end(commit=commit))
        await transactor.until("CompleteCommit" if commit else "CompleteAbort")
        for at in (1, 2):
            assert contents(cluster, at) == (2, 2, 2)
            assert markers_in(cluster, at) == [(commit, transactor.coordinator_epoch)]

    run(scenario, 3, **SETTINGS)


def describe(transactor: Transactor) -> DescribeTransactionsRequest:
    return DescribeTransactionsRequest(transactional_ids=[transactor.name])


def fetch_offsets(group: str) -> OffsetFetchRequest:
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])


async def depose(cluster: NodeCluster, zombie: ClusterNode, transactor: Transactor) -> None:
    """Its session is over and it does not know; return when another is the coordinator."""
    zombie.session.suspend()
    zombie.session.renew(-1e9)  # By its own clock the last answer is long ago.
    cluster.ensemble.end(zombie.session)
    await cluster.until(lambda: transactor.coordinator is not zombie, "nobody took over")


def test_a_coordinator_without_its_session_answers_nothing_and_decides_nothing() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await make_topics(cluster)
        zombie, group = cluster[3], name_at(cluster, OFFSETS_TOPIC, 3)
        transactor = Transactor(cluster, name_at(cluster, TRANSACTIONS_TOPIC, 3))
        await succeed(transactor.init)
        await write(transactor, 0, 1)
        await depose(cluster, zombie, transactor)
        [seen] = (await zombie.ask(describe(transactor), DescribeTransactionsResponse)).transaction_states
        assert seen.error_code in ELSEWHERE, "told from memory"
        fetched = (await zombie.ask(fetch_offsets(group), OffsetFetchResponse, 8)).groups[0]
        assert fetched.error_code in ELSEWHERE, "told from memory"
        late = asyncio.create_task(transactor.end(commit=False, at=zombie))
        await succeed(lambda: transactor.end(commit=True))
        await transactor.until("CompleteCommit")
        assert await late in ELSEWHERE
        zombie.session.resume()
        await cluster.until_all_see(lambda image: len(image.brokers) == 3)
        await transactor.until("CompleteCommit")
        for at in (0, 1):
            assert markers_in(cluster, at) == [(True, transactor.coordinator_epoch)]

    run(scenario, 3, **SETTINGS, request_timeout_ms="1000", offsets_commit_timeout_ms="500")
