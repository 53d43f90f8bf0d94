"""The configuration of the three brokers, the same for both.

Internal topics have one partition each, so that sequences can say which broker coordinates.
"""

from __future__ import annotations

BROKERS = (1, 2, 3)

SHARED_CONFIG = {
    "num.partitions": "1",
    "default.replication.factor": "3",
    "auto.create.topics.enable": "true",
    "log.retention.check.interval.ms": "600000",
    "log.retention.ms": "-1",
    "auto.leader.rebalance.enable": "false",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "replica.lag.time.max.ms": "60000",
}
"""Nobody falls out of an ISR because the machine is slow: only who stops does. Nothing is deleted for its
age, as records have times of long ago."""
