"""Any broker takes any request: what only the controller can do is sent on to it."""

import asyncio

from riverlog.model.config.alter import AlterOperation
from riverlog.model.errors import ErrorCode
from riverlog.testing.in_process import ask
from riverlog.wire.apis import ApiKey
from riverlog.wire.framing import RequestHeader, encode_request
from riverlog.wire.messages.alter_configs import AlterableConfig as ReplacedConfig
from riverlog.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from riverlog.wire.messages.alter_configs import AlterConfigsResource as ReplacedResource
from riverlog.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from riverlog.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from riverlog.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from riverlog.wire.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from riverlog.wire.messages.describe_cluster import DescribeClusterRequest
from riverlog.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from riverlog.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from riverlog.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from riverlog.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from riverlog.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from tests.cluster.nodes import ClusterNode, NodeCluster, run
from tests.waiting import loop_turns

TOPIC, BROKER, LOGGER = 2, 4, 8


async def create(
    broker: ClusterNode, name: str, partitions: int = 3, factor: int = 1, timeout_ms: int = 10_000
) -> ErrorCode:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor)
    reply = await broker.ask(CreateTopicsRequest(topics=[topic], timeout_ms=timeout_ms), CreateTopicsResponse)
    return ErrorCode(reply.topics[0].error_code)


def altered(kind: int, name: str, key: str, value: str) -> AlterConfigsResource:
    change = AlterableConfig(name=key, config_operation=AlterOperation.SET, value=value)
    return AlterConfigsResource(resource_type=kind, resource_name=name, configs=[change])


def test_topics_are_made_grown_altered_and_deleted_by_any_broker() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        other = cluster.others[0]
        assert await create(other, "t") is ErrorCode.NONE
        assert await create(other, "t") is ErrorCode.TOPIC_ALREADY_EXISTS
        await cluster.until_all_see(lambda image: "t" in image.topics)
        grow = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name="t", count=5, assignments=None)], timeout_ms=9_000
        )
        grown = await other.ask(grow, CreatePartitionsResponse)
        assert grown.results[0].error_code == ErrorCode.NONE
        await cluster.until_all_see(lambda image: len(image.topics["t"].partitions) == 5)
        alter = IncrementalAlterConfigsRequest(resources=[altered(TOPIC, "t", "retention.ms", "77")])
        told = await other.ask(alter, IncrementalAlterConfigsResponse)
        assert told.responses[0].error_code == ErrorCode.NONE
        await cluster.until_all_see(lambda image: image.topic_config("t") == {"retention.ms": "77"})
        replace = AlterConfigsRequest(
            resources=[
                ReplacedResource(
                    resource_type=TOPIC,
                    resource_name="t",
                    configs=[ReplacedConfig(name="segment.bytes", value="1048576")],
                )
            ]
        )
        assert (await other.ask(replace, AlterConfigsResponse)).responses[0].error_code == ErrorCode.NONE
        await cluster.until_all_see(lambda image: image.topic_config("t") == {"segment.bytes": "1048576"})
        delete = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=9_000)
        gone = await other.ask(delete, DeleteTopicsResponse)
        assert gone.responses[0].error_code == ErrorCode.NONE
        await cluster.until_all_see(lambda image: "t" not in image.topics)

    run(scenario)


def test_features_and_reassignments_are_the_controllers_too() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        other = cluster.others[0]
        lower = UpdateFeaturesRequest(
            feature_updates=[
                FeatureUpdateKey(feature="transaction.version", max_version_level=1, upgrade_type=2)
            ]
        )
        assert (await other.ask(lower, UpdateFeaturesResponse)).error_code == ErrorCode.NONE
        await cluster.until_all_see(lambda image: image.features["transaction.version"] == 1)
        listed = await other.ask(ListPartitionReassignmentsRequest(), ListPartitionReassignmentsResponse)
        assert listed.error_code == ErrorCode.NONE

    run(scenario)


def test_the_answer_is_the_one_that_the_controller_gives() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await create(cluster.controller, "there")
        wanted = [
            CreatableTopic(name="there", num_partitions=1, replication_factor=1),
            CreatableTopic(name="a b", num_partitions=1, replication_factor=1),
            CreatableTopic(name="twice", num_partitions=1, replication_factor=1),
            CreatableTopic(name="twice", num_partitions=1, replication_factor=1),
            CreatableTopic(name="large", num_partitions=1, replication_factor=7),
        ]
        request = CreateTopicsRequest(topics=wanted, timeout_ms=9_000)
        for version in range(2, 8):
            answers = [
                await broker.ask(request, CreateTopicsResponse, version)
                for broker in (cluster.controller, cluster.others[0])
            ]
            rows = [[(t.name, t.error_code, t.error_message) for t in each.topics] for each in answers]
            assert rows[0] == rows[1]

    run(scenario)


def test_a_topic_has_as_many_replicas_as_are_asked_for_or_assigned() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        assigned = [CreatableReplicaAssignment(partition_index=0, broker_ids=[2, 1])]
        for topic in (
            CreatableTopic(name="placed", num_partitions=1, replication_factor=2),
            CreatableTopic(name="assigned", num_partitions=-1, replication_factor=-1, assignments=assigned),
        ):
            request = CreateTopicsRequest(topics=[topic], timeout_ms=9_000)
            [result] = (await cluster.others[0].ask(request, CreateTopicsResponse)).topics
            assert (result.error_code, result.replication_factor) == (ErrorCode.NONE, 2)
        await cluster.until_all_see(lambda image: {"placed", "assigned"} <= set(image.topics))
        image = cluster.alive[0].image
        [placed], [named] = image.topics["placed"].partitions, image.topics["assigned"].partitions
        assert len(set(placed.replicas)) == 2
        assert (named.replicas, named.isr, named.leader) == ((2, 1), (2, 1), 2)

    run(scenario)


def test_replicas_may_be_assigned_to_registered_brokers_only() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        for node_id, error in ((3, ErrorCode.NONE), (9, ErrorCode.INVALID_REPLICA_ASSIGNMENT)):
            assigned = [CreatableReplicaAssignment(partition_index=0, broker_ids=[node_id])]
            topic = CreatableTopic(
                name=f"on{node_id}", num_partitions=-1, replication_factor=-1, assignments=assigned
            )
            request = CreateTopicsRequest(topics=[topic], timeout_ms=9_000)
            [result] = (await cluster.others[0].ask(request, CreateTopicsResponse)).topics
            assert result.error_code == error
        assert cluster.controller.image.topics["on3"].partitions[0].leader == 3

    run(scenario)


def test_settings_of_a_broker_are_asked_of_that_broker() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        other = cluster.others[0]
        elsewhere = cluster.controller
        request = IncrementalAlterConfigsRequest(
            resources=[
                altered(BROKER, str(other.node_id), "log.cleaner.threads", "2"),
                altered(BROKER, "", "log.retention.ms", "123456"),
                altered(LOGGER, str(other.node_id), "root", "WARN"),
                altered(BROKER, str(elsewhere.node_id), "log.cleaner.threads", "2"),
            ]
        )
        told = await other.ask(request, IncrementalAlterConfigsResponse)
        assert [each.error_code for each in told.responses] == [0, 0, 0, ErrorCode.INVALID_REQUEST]
        await cluster.until_all_see(
            lambda image: (
                image.broker_config(other.node_id) == {"log.cleaner.threads": "2"}
                and image.broker_config(None) == {"log.retention.ms": "123456"}
            )
        )

    run(scenario)


def test_a_broker_that_is_gone_and_holds_nothing_is_forgotten() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        gone, asked = cluster.others

        async def forget(node_id: int) -> ErrorCode:
            request = UnregisterBrokerRequest(broker_id=node_id)
            return ErrorCode((await asked.ask(request, UnregisterBrokerResponse)).error_code)

        assert await forget(99) is ErrorCode.BROKER_ID_NOT_REGISTERED
        assert await forget(gone.node_id) is ErrorCode.INVALID_REQUEST
        assert await create(asked, "t") is ErrorCode.NONE
        await gone.kill()
        await cluster.until_all_see(lambda image: len(image.brokers) == 2)
        assert await forget(gone.node_id) is ErrorCode.INVALID_REQUEST
        delete = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=9_000)
        await asked.ask(delete, DeleteTopicsResponse)
        assert await forget(gone.node_id) is ErrorCode.NONE
        assert await forget(gone.node_id) is ErrorCode.BROKER_ID_NOT_REGISTERED

    run(scenario)


def test_a_request_waits_for_the_next_controller_or_times_out() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        first, [other, _] = cluster.controller, cluster.others
        await first.kill()
        assert await create(other, "t") is ErrorCode.NONE
        for broker in cluster.alive:
            broker.node.controller._office.resign()
        cluster.ensemble.is_unwritable = True
        assert await create(other, "u", timeout_ms=300) is ErrorCode.REQUEST_TIMED_OUT
        features = UpdateFeaturesRequest(timeout_ms=300)
        assert (await other.ask(features, UpdateFeaturesResponse)).error_code == ErrorCode.REQUEST_TIMED_OUT
        cluster.ensemble.is_unwritable = False
        assert await create(other, "u") is ErrorCode.NONE

    run(scenario)


def test_an_alteration_is_made_here_when_the_office_has_come_here_meanwhile() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        first, [other] = cluster.controller, cluster.others
        alter = IncrementalAlterConfigsRequest(resources=[altered(BROKER, "", "log.retention.ms", "77")])
        first.node.controller._office.resign()
        cluster.ensemble.is_unwritable = True
        asked = asyncio.create_task(other.ask(alter, IncrementalAlterConfigsResponse))
        await loop_turns()
        await first.kill()
        cluster.ensemble.is_unwritable = False
        assert [each.error_code for each in (await asked).responses] == [ErrorCode.NONE]
        await cluster.until_all_see(lambda image: image.broker_config(None) == {"log.retention.ms": "77"})

    run(scenario, brokers=2)


def test_brokers_of_one_address_do_not_keep_each_other_out() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        for broker in cluster.others:
            assert await create(broker, f"of-{broker.node_id}") is ErrorCode.NONE

    run(scenario, max_connections_per_ip="1")


def test_a_topic_that_metadata_asks_for_is_made_wherever_it_is_asked_for() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        wanted = MetadataRequest(topics=[MetadataRequestTopic(name="auto")], allow_auto_topic_creation=True)
        await cluster.others[0].ask(wanted, MetadataResponse)
        await cluster.until_all_see(lambda image: "auto" in image.topics)
        told = await cluster.others[0].ask(wanted, MetadataResponse)
        assert told.topics[0].error_code == ErrorCode.NONE

    run(scenario)


async def coordinator_of(broker: ClusterNode, group: str = "g") -> tuple[int, int]:
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
    [found] = (await broker.ask(request, FindCoordinatorResponse)).coordinators
    return found.error_code, found.node_id


def test_every_broker_names_the_same_coordinator() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        first = await coordinator_of(cluster.others[0])
        assert first[0] == ErrorCode.NONE
        await cluster.until_all_see(lambda image: "__consumer_offsets" in image.topics)
        assert {await coordinator_of(broker) for broker in cluster.alive} == {first}

    run(scenario)


def test_internal_topics_are_not_made_with_fewer_replicas_than_the_setting_says() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        for broker in cluster.alive:
            error, _ = await coordinator_of(broker)
            assert error == ErrorCode.COORDINATOR_NOT_AVAILABLE
            assert "__consumer_offsets" not in broker.image.topics

    run(scenario, brokers=2, offsets_topic_replication_factor="3")


def test_an_envelope_is_taken_by_the_controller_and_from_brokers_only() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        header = RequestHeader(ApiKey.DESCRIBE_CLUSTER, 0, 5, "c")
        stranger = encode_request(header, DescribeClusterRequest())[4:]
        header = RequestHeader(ApiKey.CREATE_TOPICS, 7, 5, "c")
        request = encode_request(header, CreateTopicsRequest(timeout_ms=10))[4:]

        async def send(broker: ClusterNode, data: bytes, listener: str = "PLAINTEXT") -> ErrorCode:
            envelope = EnvelopeRequest(request_data=data)
            reply = await ask(broker.node.dispatcher, listener, envelope, EnvelopeResponse)
            return ErrorCode(reply.error_code)

        assert await send(cluster.controller, request) is ErrorCode.NONE
        assert await send(cluster.others[0], request) is ErrorCode.NOT_CONTROLLER
        assert await send(cluster.controller, request, "OUTER") is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert await send(cluster.controller, stranger) is ErrorCode.INVALID_REQUEST
        assert await send(cluster.controller, request[:-2]) is ErrorCode.INVALID_REQUEST
        assert await send(cluster.controller, b"") is ErrorCode.INVALID_REQUEST
        versions = await cluster.controller.ask(
            ApiVersionsRequest(client_software_name="a", client_software_version="1"), ApiVersionsResponse
        )
        assert ApiKey.ENVELOPE not in {each.api_key for each in versions.api_keys}

    run(scenario)
