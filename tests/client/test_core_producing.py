"""Batches before and after their requests: sequences, what goes together, and what a reply says of each."""

from riverlog.client.core.new_batch import NewBatch
from riverlog.client.core.producing import Sequences, is_fenced, outcome_of, requests_for
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerIdAndEpoch, TopicPartition
from riverlog.records.batch import read_header
from riverlog.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)

MIB = 1 << 20


def batch(partition: int = 0, *, records: int = 1, size: int = 100) -> NewBatch:
    return NewBatch("t", partition, [bytes(size)], records, 1000)


def reply(*codes: int) -> ProduceResponse:
    partitions = [PartitionProduceResponse(index=n, error_code=code) for n, code in enumerate(codes)]
    return ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=partitions)])


def test_sequences_count_the_records_of_each_partition() -> None:
    sequences = Sequences()
    batches = [batch(0, records=3), batch(1, records=5), batch(0, records=2), batch(0)]
    new = sequences.sign(batches, ProducerIdAndEpoch(7, 1), is_transactional=True)
    assert new == [TopicPartition("t", 0), TopicPartition("t", 1)]
    assert [each.sequence for each in batches] == [0, 0, 3, 5]
    assert sequences.sign([batch(1)], ProducerIdAndEpoch(7, 1), is_transactional=True) == []
    header = read_header(b"".join(batches[2].pieces))
    assert (header.producer_id, header.base_sequence, header.is_transactional) == (7, 3, True)


def test_the_order_of_sequences_goes_over_their_end() -> None:
    sequences = Sequences()
    most = batch(records=2**31 - 2)
    sequences.sign([most], ProducerIdAndEpoch(7, 1), is_transactional=False)
    late, wrapped = batch(records=4), batch()
    sequences.sign([late, wrapped], ProducerIdAndEpoch(7, 1), is_transactional=False)
    assert (late.sequence, wrapped.sequence) == (2**31 - 2, 2)
    assert sequences.in_order([wrapped, late]) == [late, wrapped]


def test_a_request_holds_a_partition_once_and_goes_to_one_leader() -> None:
    batches = [batch(0), batch(1), batch(2), batch(0), batch(2), batch(2)]
    requests = list(requests_for(batches, lambda at: at.partition % 2))
    assert [(each.node_id, [one.partition for one in each.batches]) for each in requests] == [
        (0, [0, 2]),
        (0, [0, 2]),
        (0, [2]),
        (1, [1]),
    ]
    assert [each.batches[0] for each in requests] == [batches[0], batches[3], batches[5], batches[1]]


def test_a_request_is_not_larger_than_the_limit_but_for_one_batch() -> None:
    batches = [
        batch(0, size=5 * MIB),
        batch(1, size=2 * MIB),
        batch(2, size=2 * MIB),
        batch(3, size=20 * MIB),
    ]
    requests = list(requests_for(batches, lambda at: 1))
    assert [[one.partition for one in each.batches] for each in requests] == [[0, 1], [2], [3]]


def test_a_reply_says_of_each_batch_whether_it_is_written() -> None:
    batches = [batch(n, records=n + 1) for n in range(4)]
    codes = (0, ErrorCode.DUPLICATE_SEQUENCE_NUMBER, ErrorCode.NOT_LEADER_OR_FOLLOWER, 3)
    outcome = outcome_of(batches, reply(*codes), follows_failure=False)
    assert (outcome.records_written, outcome.again, outcome.refused) == (3, batches[2:], None)


def test_the_first_batch_that_is_refused_is_named() -> None:
    batches = [batch(n) for n in range(3)]
    outcome = outcome_of(batches, reply(0, 10, 29), follows_failure=False)
    assert (outcome.records_written, outcome.again) == (1, [])
    assert outcome.refused == (batches[1], ErrorCode.MESSAGE_TOO_LARGE)


def test_out_of_order_is_tried_again_only_behind_a_failure() -> None:
    out_of_order = reply(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    lone = batch()
    assert outcome_of([lone], out_of_order, follows_failure=True).again == [lone]
    refused = outcome_of([lone], out_of_order, follows_failure=False).refused
    assert refused == (lone, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)


def test_a_batch_that_the_reply_leaves_out_is_not_written() -> None:
    outcome = outcome_of([batch(0), batch(1)], reply(0), follows_failure=False)
    assert outcome.records_written == 1
    assert outcome.refused is not None
    assert outcome.refused[1] == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_producer_is_fenced_by_a_new_epoch_not_by_a_large_batch() -> None:
    assert is_fenced(ErrorCode.INVALID_PRODUCER_EPOCH)
    assert not is_fenced(ErrorCode.MESSAGE_TOO_LARGE)
