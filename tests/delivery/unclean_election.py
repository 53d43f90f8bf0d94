"""A partition whose acknowledged records are lost by an unclean election, step by step.

The first broker of two replicas leads alone and is killed; the other one, which missed what was written
meanwhile, is elected all the same and takes more records, so that its log reaches beyond what a consumer had
read: whoever goes on by offset alone notices nothing.
"""

from typing import Any, Final

from confluent_kafka import KafkaError, Producer
from confluent_kafka import Message as Delivered

from riverlog.client import cluster as client
from riverlog.model.errors import ErrorCode
from riverlog.testing import Cluster
from riverlog.testing.cluster_records import address_of
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from riverlog.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from riverlog.wire.schema import Message
from tests.waiting import eventually

TOPIC: Final = "truncated"
KEPT, LOST, NEW = 10, 10, 20
"""Records that both replicas have, that only the first has, and that the second takes after its election."""
_LEADER, _OTHER = 1, 2
_WAIT_S: Final = 60.0


class UncleanElection:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        place = CreatableReplicaAssignment(partition_index=0, broker_ids=[_LEADER, _OTHER])
        topic = CreatableTopic(name=TOPIC, num_partitions=-1, replication_factor=-1, assignments=[place])
        created: CreateTopicsResponse = self._ask(ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=[topic]))
        assert created.topics[0].error_code == ErrorCode.NONE, created
        self._until(leader=_LEADER, in_sync=2)
        self._write("kept", KEPT)

    def write_what_is_lost(self) -> None:
        """What a consumer reads, and what will not be there any more."""
        self._cluster.kill(_OTHER)
        self._until(leader=_LEADER, in_sync=1)
        self._write("lost", LOST)

    def lose_it(self) -> None:
        self._cluster.kill(_LEADER)
        self._cluster.restart(_OTHER)
        self._until(leader=-1, in_sync=1)
        wanted = [TopicPartitions(topic=TOPIC, partitions=[0])]
        request = ElectLeadersRequest(election_type=1, topic_partitions=wanted, timeout_ms=10_000)
        elected: ElectLeadersResponse = self._ask(ApiKey.ELECT_LEADERS, request)
        [result] = elected.replica_election_results[0].partition_result
        assert result.error_code == ErrorCode.NONE, result
        self._until(leader=_OTHER, in_sync=1)
        self._write("new", NEW)

    def _until(self, *, leader: int, in_sync: int) -> None:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=False)

        def is_so() -> bool:
            reply: MetadataResponse = self._ask(ApiKey.METADATA, request)
            partitions = reply.topics[0].partitions
            return any(each.leader_id == leader and len(each.isr_nodes) == in_sync for each in partitions)

        eventually(is_so, f"broker {leader} with {in_sync} in sync", _WAIT_S)

    def _ask(self, api: ApiKey, request: Message) -> Any:
        servers = tuple(address_of(each) for each in self._cluster.bootstrap_servers.split(","))
        with client.Cluster(client.ClientSettings(servers, "election", _WAIT_S, _WAIT_S)) as cluster:
            return cluster.ask_any(api, request)

    def _write(self, what: str, count: int) -> None:
        failures: list[KafkaError] = []

        def on_delivery(error: KafkaError | None, _: Delivered) -> None:
            if error is not None:
                failures.append(error)

        producer = Producer({"bootstrap.servers": self._cluster.bootstrap_servers, "acks": "all"})
        for number in range(count):
            producer.produce(TOPIC, f"{what} {number}", partition=0, on_delivery=on_delivery)
        assert producer.flush(_WAIT_S) == 0
        assert not failures
