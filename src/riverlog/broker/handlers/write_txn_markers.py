"""WriteTxnMarkers 1-2: a coordinator ends a transaction in partitions that this node leads.

A coordinator of this cluster that got no answer asks again, so it is looked whether its marker stands
already; Apache Kafka writes it once more. Whoever else asks, as Kafka's tools do for a transaction that
hangs, gets what Apache Kafka does.
"""

from riverlog.broker.exchange.context import RequestContext
from riverlog.coordinator.transactions.markers import Marker, MarkerWriter
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, ProducerIdAndEpoch, TopicPartition, is_broker
from riverlog.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


class WriteTxnMarkersHandler:
    def __init__(self, writer: MarkerWriter) -> None:
        self._writer = writer

    async def handle(
        self, request: WriteTxnMarkersRequest, context: RequestContext
    ) -> WriteTxnMarkersResponse:
        may_be_written = is_broker(context.client_id)
        return WriteTxnMarkersResponse(
            markers=[await self._write(marker, may_be_written) for marker in request.markers]
        )

    async def _write(self, wanted: WritableTxnMarker, may_be_written: bool) -> WritableTxnMarkerResult:
        marker = Marker(
            ProducerIdAndEpoch(wanted.producer_id, wanted.producer_epoch),
            LeaderEpoch(wanted.coordinator_epoch),
            wanted.transaction_result,
            wanted.transaction_version,
        )
        written = [
            (
                topic.name,
                [
                    (
                        each,
                        self._writer.write(
                            TopicPartition(topic.name, each), marker, may_be_written=may_be_written
                        ),
                    )
                    for each in topic.partition_indexes
                ],
            )
            for topic in wanted.topics
        ]
        return WritableTxnMarkerResult(
            producer_id=wanted.producer_id,
            topics=[
                WritableTxnMarkerTopicResult(
                    name=topic,
                    partitions=[
                        WritableTxnMarkerPartitionResult(
                            partition_index=each, error_code=await future or ErrorCode.NONE
                        )
                        for each, future in partitions
                    ],
                )
                for topic, partitions in written
            ],
        )
