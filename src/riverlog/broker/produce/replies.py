"""What a produce is answered of one partition, as Apache Kafka would; and of all where no reply is wanted."""

from riverlog.broker.exchange.context import HangUp
from riverlog.model.errors import ErrorCode
from riverlog.replication.append_outcomes import AppendedRecords, AppendRefused
from riverlog.replication.partition import Partition
from riverlog.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceResponse,
)

_WITHOUT_LOG_START = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    }
)
"""Errors for which Kafka does not say where the log starts."""


def success(index: int, written: AppendedRecords, partition: Partition) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index,
        base_offset=written.first_offset,
        log_append_time_ms=-1 if written.append_time_ms is None else written.append_time_ms,
        log_start_offset=partition.log.log_start_offset,
    )


def error_of(
    index: int, refused: AppendRefused, partition: Partition | None = None
) -> PartitionProduceResponse:
    has_log_start = partition is not None and (
        bool(refused.record_errors) or refused.error not in _WITHOUT_LOG_START
    )
    return PartitionProduceResponse(
        index=index,
        error_code=_for_client(refused.error),
        base_offset=-1,
        log_start_offset=partition.log.log_start_offset if partition is not None and has_log_start else -1,
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=at, batch_index_error_message=message)
            for at, message in refused.record_errors
        ],
        error_message=refused.message,
    )


def _for_client(error: ErrorCode) -> ErrorCode:
    """Kafka stumbles over some bytes with UNKNOWN_SERVER_ERROR; clients take that for a lost write and repeat
    it, so it is told as what it is: a batch that will never be taken."""
    return ErrorCode.INVALID_RECORD if error is ErrorCode.UNKNOWN_SERVER_ERROR else error


def silence_or_hang_up(response: ProduceResponse) -> HangUp | None:
    """A client that wants no reply learns of a failure by losing its connection, as with Kafka."""
    for topic in response.responses:
        for reply in topic.partition_responses:
            if reply.error_code:
                error = ErrorCode(reply.error_code).name
                return HangUp(f"produce with acks=0 to {topic.name}-{reply.index} failed with {error}")
    return None
