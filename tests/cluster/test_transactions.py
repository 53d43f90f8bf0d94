"""Transactions whose coordinator, partitions and group are on different brokers, and brokers that go away."""

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId
from riverlog.model.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from riverlog.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tests.cluster.nodes import NodeCluster, run
from tests.cluster.transactor import TOPIC, Transactor, contents, make_topics, name_at, open_in

# Partition 0 of `orders` is on broker 1, 1 on 2 and 2 on 3.
NONE = ErrorCode.NONE


async def begun(cluster: NodeCluster, *, version: int = 2, coordinator: int = 1) -> Transactor:
    """A producer whose coordinator is on that broker, with nothing written."""
    await make_topics(cluster)
    transactor = Transactor(cluster, name_at(cluster, TRANSACTIONS_TOPIC, coordinator), version=version)
    assert await transactor.init() is NONE
    return transactor


@pytest.mark.parametrize("version", [1, 2])
def test_a_transaction_over_three_brokers_is_ended_on_all_of_them(version: int) -> None:
    async def scenario(cluster: NodeCluster) -> None:
        transactor = await begun(cluster, version=version)
        group = name_at(cluster, OFFSETS_TOPIC, 3)
        for number, commit in enumerate((True, False, True), 1):
            if version == 1:
                assert await transactor.add(0, 1, 2) is NONE
            for partition in range(3):
                assert await transactor.write(partition, b"v") is NONE
                assert await transactor.write(partition, b"w") is NONE
            assert await transactor.commit_offset(group, number) is NONE
            assert await transactor.end(commit=commit) is NONE
            await transactor.until("CompleteCommit" if commit else "CompleteAbort")
            # Two records and one marker, no more.
            assert {contents(cluster, at) for at in range(3)} == {(3 * number,) * 3}
            assert await transactor.committed_offset(group) == (number if commit else 1)

    run(scenario)


def test_the_coordinator_is_found_from_every_broker_and_no_other_answers_for_it() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        transactor = await begun(cluster, coordinator=2)
        for broker in cluster.alive:
            request = FindCoordinatorRequest(coordinator_keys=[transactor.name], key_type=1)
            found = (await broker.ask(request, FindCoordinatorResponse)).coordinators[0]
            assert (found.node_id, found.port) == (2, cluster[2].node.addresses["PLAINTEXT"].port)
            error = await transactor.init(at=broker)
            assert error is (NONE if broker.node_id == 2 else ErrorCode.NOT_COORDINATOR)

    run(scenario)


@pytest.mark.parametrize(
    ("produce_version", "error"), [(11, ErrorCode.TRANSACTION_ABORTABLE), (10, ErrorCode.INVALID_TXN_STATE)]
)
def test_a_batch_for_a_partition_that_was_not_added_is_refused_by_its_leader(
    produce_version: int, error: ErrorCode
) -> None:
    async def scenario(cluster: NodeCluster) -> None:
        transactor = await begun(cluster, version=1)
        assert await transactor.add(1) is NONE
        for partition in (0, 2):
            assert await transactor.write(partition, b"v", produce_version) is error
            assert contents(cluster, partition) == (0, 0, 0)
        assert await transactor.write(1, b"v", produce_version) is NONE
        assert await transactor.end(commit=True) is NONE
        await transactor.until("CompleteCommit")
        assert contents(cluster, 1) == (2, 2, 2)
        assert await transactor.write(1, b"late", produce_version) is error
        assert contents(cluster, 1) == (2, 2, 2)

    run(scenario)


@pytest.mark.parametrize("version", [1, 2])
def test_nothing_is_written_while_the_coordinator_cannot_be_asked(version: int) -> None:
    async def scenario(cluster: NodeCluster) -> None:
        transactor = await begun(cluster, version=version)
        if version == 1:
            assert await transactor.add(1) is NONE
        await cluster[1].kill()
        assert await transactor.write(1, b"v") is ErrorCode.NOT_ENOUGH_REPLICAS
        assert contents(cluster, 1) == (0, 0, 0)
        await cluster[1].start()
        await cluster.until_all_see(
            lambda image: all(each.leader is not None for each in image.topics[TRANSACTIONS_TOPIC].partitions)
        )
        assert await transactor.write(1, b"v") is NONE
        assert await transactor.end(commit=True) is NONE
        await transactor.until("CompleteCommit")
        assert contents(cluster, 1) == (2, 2, 2)

    run(scenario)


@pytest.mark.parametrize("commit", [True, False])
def test_a_broker_that_is_away_gets_its_marker_when_it_is_back(commit: bool) -> None:
    async def scenario(cluster: NodeCluster) -> None:
        transactor = await begun(cluster)
        group = name_at(cluster, OFFSETS_TOPIC, 3)
        for partition in range(3):
            assert await transactor.write(partition, b"v") is NONE
        assert await transactor.commit_offset(group, 9) is NONE
        await cluster[3].kill()
        assert await transactor.end(commit=commit) is NONE
        await cluster.until(lambda: not open_in(cluster, 1))
        assert await transactor.state() == ("PrepareCommit" if commit else "PrepareAbort")
        await cluster[3].start()
        await transactor.until("CompleteCommit" if commit else "CompleteAbort")
        assert {contents(cluster, at) for at in range(3)} == {(2, 2, 2)}
        assert await transactor.committed_offset(group) == (9 if commit else -1)

    run(scenario)


def test_a_coordinator_that_dies_between_the_decision_and_the_markers_writes_them_when_it_is_back() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        transactor = await begun(cluster)
        for partition in (1, 2):
            assert await transactor.write(partition, b"v") is NONE
        await cluster[3].kill()
        assert await transactor.end(commit=True) is NONE
        await cluster.until(lambda: not open_in(cluster, 1))
        await cluster[1].kill()
        await cluster[3].start()
        await cluster[1].start()
        await cluster.until_all_see(
            lambda image: all(
                each.leader is not None
                for name in (TOPIC, TRANSACTIONS_TOPIC)
                for each in image.topics[name].partitions
            )
        )
        await transactor.until("CompleteCommit")
        assert [contents(cluster, at) for at in (1, 2)] == [(2, 2, 2)] * 2, "one marker each"

    run(scenario)


def test_a_marker_that_a_broker_asks_for_again_is_not_written_twice_and_a_tools_is() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        transactor = await begun(cluster)
        assert await transactor.write(1, b"v") is NONE
        marker = WritableTxnMarker(
            producer_id=transactor.me.producer_id,
            producer_epoch=transactor.me.producer_epoch + 1,
            topics=[WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[1])],
            coordinator_epoch=9,
            transaction_version=2,
        )
        request = WriteTxnMarkersRequest(markers=[marker])
        for _ in range(3):
            reply = await cluster[1].node._peers.ask(NodeId(2), ApiKey.WRITE_TXN_MARKERS, request)
            assert reply.markers[0].topics[0].partitions[0].error_code == NONE
        assert contents(cluster, 1) == (2, 2, 2)
        await cluster[2].ask(request, WriteTxnMarkersResponse)
        assert contents(cluster, 1) == (3, 3, 3)

    run(scenario)


def test_a_topic_that_was_deleted_meanwhile_does_not_keep_a_transaction_open() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        transactor = await begun(cluster)
        assert await transactor.write(1, b"v") is NONE
        assert await transactor.write(2, b"v") is NONE
        await cluster[3].kill()
        assert await transactor.end(commit=True) is NONE
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=TOPIC)], timeout_ms=10_000)
        await cluster.until(lambda: cluster.alive[0].image.controller_id in (NodeId(1), NodeId(2)))
        deleted = await cluster.controller.ask(request, DeleteTopicsResponse, 6)
        assert deleted.responses[0].error_code == NONE
        await transactor.until("CompleteCommit")

    run(scenario)
