"""The configuration under which Kafka is recorded and Riverlog is replayed: the same keys for both."""

from __future__ import annotations

SHARED_CONFIG = {
    "num.partitions": "1",
    "auto.create.topics.enable": "true",
    "log.retention.check.interval.ms": "600000",
}
"""Given to both. Everything else is at Kafka's default, which must be ours."""

ORACLE_CONFIG = SHARED_CONFIG

OUR_CONFIG = SHARED_CONFIG | {
    "node.id": "1",
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@127.0.0.1:1",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "transaction.two.phase.commit.enable": "true",
    "riverlog.validate.records": "true",
}
"""With the keys that the oracle script sets by itself, so that DescribeConfigs can agree.

Kafka checks each record of every batch, so we are told to do the same.
"""

CLUSTER_DEFAULTS = {"min.insync.replicas": "1"}
"""Set on both before the first sequence: Kafka's formatting of the storage leaves it as a dynamic default."""
