"""Records of `__transaction_state`.

One class per key and value for all its versions; `formats` says which belong together. Written by hand; the
package says why.
"""

from riverlog.wire.schema import DEFAULT, NOT_FLEXIBLE, Field, Message


class TransactionLogKey(Message):
    __slots__ = ("transactional_id",)
    VERSIONS = (0, 0)
    FLEXIBLE = NOT_FLEXIBLE
    FIELDS = (Field("transactional_id", "string", (0, 0), default=""),)

    def __init__(
        self,
        *,
        transactional_id: str = "",
    ) -> None:
        self.transactional_id = transactional_id


class TransactionLogPartitions(Message):
    __slots__ = (
        "partition_ids",
        "topic",
    )
    VERSIONS = (0, 1)
    FLEXIBLE = 1
    FIELDS = (
        Field("topic", "string", (0, 1), default=""),
        Field("partition_ids", "int32", (0, 1), array=True, default=DEFAULT),
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partition_ids: list[int] = DEFAULT,
    ) -> None:
        self.topic = topic
        self.partition_ids = [] if partition_ids is DEFAULT else partition_ids


class TransactionLogValue(Message):
    __slots__ = (
        "client_transaction_version",
        "next_producer_epoch",
        "next_producer_id",
        "previous_producer_id",
        "producer_epoch",
        "producer_id",
        "transaction_last_update_timestamp_ms",
        "transaction_partitions",
        "transaction_start_timestamp_ms",
        "transaction_status",
        "transaction_timeout_ms",
    )
    VERSIONS = (0, 1)
    FLEXIBLE = 1
    FIELDS = (
        Field("producer_id", "int64", (0, 1)),
        Field("producer_epoch", "int16", (0, 1)),
        Field("transaction_timeout_ms", "int32", (0, 1)),
        Field("transaction_status", "int8", (0, 1)),
        Field(
            "transaction_partitions",
            "struct",
            (0, 1),
            nullable=(0, 1),
            array=True,
            struct=TransactionLogPartitions,
            default=DEFAULT,
        ),
        Field("transaction_last_update_timestamp_ms", "int64", (0, 1)),
        Field("transaction_start_timestamp_ms", "int64", (0, 1)),
        Field("previous_producer_id", "int64", (1, 1), tag=0, tagged=(1, 1), default=-1),
        Field("next_producer_id", "int64", (1, 1), tag=1, tagged=(1, 1), default=-1),
        Field("client_transaction_version", "int16", (1, 1), tag=2, tagged=(1, 1)),
        Field("next_producer_epoch", "int16", (1, 1), tag=3, tagged=(1, 1), default=-1),
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        producer_epoch: int = 0,
        transaction_timeout_ms: int = 0,
        transaction_status: int = 0,
        transaction_partitions: list[TransactionLogPartitions] | None = DEFAULT,
        transaction_last_update_timestamp_ms: int = 0,
        transaction_start_timestamp_ms: int = 0,
        previous_producer_id: int = -1,
        next_producer_id: int = -1,
        client_transaction_version: int = 0,
        next_producer_epoch: int = -1,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.transaction_timeout_ms = transaction_timeout_ms
        self.transaction_status = transaction_status
        self.transaction_partitions = [] if transaction_partitions is DEFAULT else transaction_partitions
        self.transaction_last_update_timestamp_ms = transaction_last_update_timestamp_ms
        self.transaction_start_timestamp_ms = transaction_start_timestamp_ms
        self.previous_producer_id = previous_producer_id
        self.next_producer_id = next_producer_id
        self.client_transaction_version = client_transaction_version
        self.next_producer_epoch = next_producer_epoch
