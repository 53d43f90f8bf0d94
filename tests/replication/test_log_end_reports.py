"""What a broker tells of logs that go beyond the metadata, and when it tells it no more."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from riverlog.model.ids import LeaderEpoch
from riverlog.model.log_end import NO_LOG_ENDS, LogEnd, LogEnds
from riverlog.node.adapters.metrics import InMemoryMetrics
from riverlog.replication.log_end_reports import LogEndReports
from tests.coordinator.hosting import Cluster
from tests.replication.replicated import (
    BROKER_EPOCH,
    BROKERS,
    ME,
    NOW_MS,
    SECOND,
    TOPIC_ID,
    image_of,
    opened,
    partition_image,
    records,
)
from tests.virtual_time import run_virtually
from tests.waiting import loop_turns


class Reporting:
    def __init__(self) -> None:
        self.cluster = Cluster(is_alone=False)
        self.told: LogEnds = NO_LOG_ENDS
        self.found_older = 0
        self.reports = LogEndReports(
            self.cluster.replicas, self._tell, InMemoryMetrics(), on_older=self._on_older
        )
        self.cluster.follow(self.reports.apply)

    def _tell(self, told: LogEnds) -> None:
        self.told = told

    def _on_older(self) -> None:
        self.found_older += 1

    def lead_in_epoch(self, epoch: int) -> None:
        image = partition_image(replicas=(ME,), isr=(ME,), epoch=epoch)
        self.cluster.show(image_of(image._replace(leader_broker_epoch=BROKER_EPOCH)))

    def write_and_close(self) -> None:
        partition = opened(self.cluster)
        partition.append(records(), NOW_MS, for_all_replicas=False)
        self.close()

    def close(self) -> None:
        partition = opened(self.cluster)
        partition.raise_watermark(partition.log.log_end_offset)  # As its checkpoint would have it.
        self.cluster.replicas.let_go(partition)
        partition.log.sync.flush()
        partition.log.close(clean=True)


def reporting(work: Callable[[Reporting], Awaitable[None]]) -> None:
    async def run() -> None:
        reporting = Reporting()
        reporting.reports.start()
        try:
            await work(reporting)
        finally:
            await reporting.reports.close()

    run_virtually(run)


def test_what_is_settled_while_its_log_is_closed_is_told_no_more() -> None:
    async def work(node: Reporting) -> None:
        node.lead_in_epoch(7)
        node.write_and_close()
        node.lead_in_epoch(5)
        opened(node.cluster)
        await loop_turns(10)
        assert node.told == {(TOPIC_ID, 0): LogEnd(LeaderEpoch(7), 1)}
        node.close()
        node.lead_in_epoch(8)
        await loop_turns(10)
        assert node.told == NO_LOG_ENDS
        assert not len(node.cluster.replicas.ahead)

    reporting(work)


def test_what_another_broker_tells_says_once_that_the_metadata_is_older() -> None:
    async def work(node: Reporting) -> None:
        node.lead_in_epoch(7)
        assert node.found_older == 0
        told = BROKERS[SECOND]._replace(log_ends={(TOPIC_ID, 3): LogEnd(LeaderEpoch(9), 1)})
        for epoch in (7, 8):
            image = image_of(partition_image(leader=SECOND, epoch=epoch))
            node.cluster.show(replace(image, brokers={**BROKERS, SECOND: told}))
        assert node.found_older == 1

    reporting(work)
