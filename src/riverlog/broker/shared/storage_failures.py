"""What clients are told when a log cannot be read.

Damage is CORRUPT_MESSAGE, as in Apache Kafka: the error at which its consumer stops and names the offset, and
which librdkafka hands to the application. Every other failure is of the directory and may be over after a
restart, for which clients wait (KAFKA_STORAGE_ERROR).
"""

from riverlog.model.errors import CorruptLogError, ErrorCode, StorageError

READ_FAILURES = (StorageError, CorruptLogError)


def error_for_client(failure: StorageError | CorruptLogError) -> ErrorCode:
    return (
        ErrorCode.CORRUPT_MESSAGE if isinstance(failure, CorruptLogError) else ErrorCode.KAFKA_STORAGE_ERROR
    )
