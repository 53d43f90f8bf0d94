"""ListOffsets of a leader that does not know yet how much of its log is committed (KIP-207)."""

from riverlog.broker.exchange.context import RequestContext
from riverlog.broker.exchange.origin import Origin
from riverlog.broker.handlers.list_offsets import ListOffsetsHandler
from riverlog.model.errors import ErrorCode
from riverlog.model.network import Address
from riverlog.wire.apis import ApiKey
from riverlog.wire.framing import RequestHeader
from riverlog.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from tests.coordinator.hosting import Cluster
from tests.replication.replicated import (
    NOW_MS,
    SECOND,
    THIRD,
    fetched,
    image_of,
    opened,
    partition_image,
    records,
)
from tests.virtual_time import run_virtually

LATEST, EARLIEST = -1, -2


def asked(cluster: Cluster, timestamp_ms: int, version: int = 11, *, replica_id: int = -1) -> tuple[int, int]:
    request = ListOffsetsRequest(
        replica_id=replica_id,
        topics=[
            ListOffsetsTopic(
                name="orders",
                partitions=[ListOffsetsPartition(partition_index=0, timestamp=timestamp_ms)],
            )
        ],
    )
    header = RequestHeader(ApiKey.LIST_OFFSETS, version, 1, None)
    context = RequestContext(header, Origin(Address("127.0.0.1", 0), "PLAINTEXT"))
    answer = ListOffsetsHandler(cluster.replicas).handle(request, context)
    assert isinstance(answer, ListOffsetsResponse)
    reply = answer.topics[0].partitions[0]
    return reply.error_code, reply.offset


def test_a_new_leader_names_no_end_until_its_followers_have_told_what_is_committed() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        partition = opened(cluster, partition_image())
        partition.append(records(), NOW_MS, for_all_replicas=False)
        assert asked(cluster, LATEST) == (ErrorCode.NONE, 0), "nobody was told more under this epoch"
        cluster.show(image_of(partition_image(epoch=6)))
        assert asked(cluster, LATEST) == (ErrorCode.OFFSET_NOT_AVAILABLE, -1)
        assert asked(cluster, LATEST, 4) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
        assert asked(cluster, NOW_MS) == (ErrorCode.OFFSET_NOT_AVAILABLE, -1)
        assert asked(cluster, EARLIEST) == (ErrorCode.NONE, 0)
        for follower in (SECOND, THIRD):
            assert fetched(partition, follower, 6, 1) is None
        assert asked(cluster, LATEST) == (ErrorCode.NONE, 1)
        assert asked(cluster, NOW_MS) == (ErrorCode.NONE, 0)

    run_virtually(scenario)


def test_a_follower_is_told_where_the_log_ends_committed_or_not() -> None:
    """One that has to begin anew asks for it, and until it is in sync again nothing may be committed."""

    async def scenario() -> None:
        cluster = Cluster()
        partition = opened(cluster, partition_image())
        partition.append(records(), NOW_MS, for_all_replicas=False)
        assert asked(cluster, LATEST, replica_id=SECOND) == (ErrorCode.NONE, 1)
        cluster.show(image_of(partition_image(epoch=6)))
        assert asked(cluster, LATEST, replica_id=SECOND) == (ErrorCode.NONE, 1)

    run_virtually(scenario)
