"""The reply to a follower, written by hand, is what the tables read, and what they would have written."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from riverlog.testing.in_process import decode_reply
from riverlog.wire.apis import ApiKey
from riverlog.wire.by_hand.replica_fetch_response import ReplicaRow, encode_replica_fetch
from riverlog.wire.framing import encode_response
from riverlog.wire.messages.fetch import EpochEndOffset, FetchableTopicResponse, FetchResponse, PartitionData

IDS = st.sampled_from([UUID(int=1), UUID(int=2), None])
OFFSETS = st.integers(-1, 2**62)
ROWS = st.builds(
    ReplicaRow,
    IDS,
    st.integers(0, 2**31 - 1),
    st.integers(-1, 200),
    OFFSETS,
    OFFSETS,
    st.none(),
    st.none() | st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**62)),
)


def by_table(rows: list[ReplicaRow]) -> FetchResponse:
    response = FetchResponse(session_id=5)
    for row in rows:
        if not response.responses or response.responses[-1].topic_id != row.topic_id:
            response.responses.append(FetchableTopicResponse(topic_id=row.topic_id))
        data = PartitionData(
            partition_index=row.partition,
            error_code=row.error_code,
            high_watermark=row.high_watermark,
            log_start_offset=row.log_start_offset,
            aborted_transactions=None,
            records=b"",
        )
        if row.diverging is not None:
            epoch, end_offset = row.diverging
            data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
        response.responses[-1].partitions.append(data)
    return response


@given(st.lists(ROWS, max_size=5), st.integers(15, 18))
def test_it_is_what_the_tables_write(rows: list[ReplicaRow], version: int) -> None:
    frame = b"".join(encode_replica_fetch(9, 5, rows))  # type: ignore[arg-type]
    assert frame == encode_response(ApiKey.FETCH, version, 9, by_table(rows))
    assert decode_reply(FetchResponse, ApiKey.FETCH, version, [frame]).session_id == 5
