"""An administrator: makes the topics that the others use, and keeps changing things meanwhile.

Records are deleted only from topics that say so, a topic is deleted and made anew only if it is a scratch
one, so that what the other clients see can be explained.
"""

from dataclasses import dataclass, field

from riverlog.model.errors import ErrorCode
from riverlog.testing.simulation.clients.process import SimulatedClient, Surroundings
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from riverlog.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from riverlog.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from riverlog.wire.messages.delete_topics import DeleteTopicsRequest
from riverlog.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

_TOPIC_RESOURCE = 2
_SET = 0
_GROWTH_MAX = 3
_EXISTS = int(ErrorCode.TOPIC_ALREADY_EXISTS)


@dataclass(slots=True)
class TopicPlan:
    name: str
    partitions: int
    configs: dict[str, str] = field(default_factory=dict)
    is_trimmed: bool = False
    """Records are deleted from its head now and then."""
    is_scratch: bool = False
    """It is deleted and made anew."""
    replication_factor: int = 1


class Admin(SimulatedClient):
    kind = "admin"

    def __init__(self, around: Surroundings, topics: list[TopicPlan], pause_s: float = 0.7) -> None:
        super().__init__(around)
        self.topics = topics
        self._missing = list(topics)
        self._pause_s = pause_s

    @property
    def is_ready(self) -> bool:
        """All topics are there."""
        return not self._missing

    async def operate(self) -> None:
        if self._missing:
            await self._create(self._missing[0])
            return
        await self.pause(self._pause_s)
        operation = self._chance.choice([self._alter, self._grow, self._trim, self._delete])
        await operation()

    async def _create(self, topic: TopicPlan) -> None:
        configs = [CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()]
        wanted = CreatableTopic(
            name=topic.name,
            num_partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            configs=configs,
        )
        reply = await self.ask(ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest(topics=[wanted], timeout_ms=5000))
        [answer] = reply.topics
        if answer.error_code in (0, _EXISTS):
            self._missing.remove(topic)
            self.done("created a topic", topic=topic.name)
        else:
            self.refused("create topic", answer.error_code)
            await self.pause(0.2)

    async def _alter(self) -> None:
        topic = self._chance.choice(self.topics)
        change = AlterableConfig(
            name="max.message.bytes",
            config_operation=_SET,
            value=str(self._chance.randint(100_000, 2_000_000)),
        )
        resource = AlterConfigsResource(
            resource_type=_TOPIC_RESOURCE, resource_name=topic.name, configs=[change]
        )
        reply = await self.ask(
            ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest(resources=[resource])
        )
        self._told("altered a config", reply.responses[0].error_code, topic)

    async def _grow(self) -> None:
        topics = [each for each in self.topics if each.is_scratch and each.partitions < _GROWTH_MAX]
        if not topics:
            return
        topic = self._chance.choice(topics)
        wanted = CreatePartitionsTopic(name=topic.name, count=topic.partitions + 1, assignments=None)
        reply = await self.ask(
            ApiKey.CREATE_PARTITIONS, 3, CreatePartitionsRequest(topics=[wanted], timeout_ms=5000)
        )
        code = reply.results[0].error_code
        if code in (0, ErrorCode.INVALID_PARTITIONS):
            topic.partitions += 1
        self._told("added a partition", code, topic)

    async def _trim(self) -> None:
        topics = [each for each in self.topics if each.is_trimmed]
        if not topics:
            return
        topic = self._chance.choice(topics)
        index = self._chance.randrange(topic.partitions)
        newest = next(iter(self._ledger.named(topic.name, index)), None)
        if newest is None or newest.end <= newest.start:
            return
        offset = self._chance.randint(newest.start, newest.end)
        piece = DeleteRecordsPartition(partition_index=index, offset=offset)
        wanted = DeleteRecordsTopic(name=topic.name, partitions=[piece])
        newest.may_be_deleted_to(offset)
        reply = await self.ask(
            ApiKey.DELETE_RECORDS, 2, DeleteRecordsRequest(topics=[wanted], timeout_ms=5000)
        )
        [answer] = reply.topics[0].partitions
        if not answer.error_code and answer.low_watermark < offset:
            raise self.violated(
                "I3", f"{topic.name}-{index}: deleted to {offset}, {answer.low_watermark} told"
            )
        self._told("deleted records", answer.error_code, topic)

    async def _delete(self) -> None:
        topics = [each for each in self.topics if each.is_scratch]
        if not topics or self._chance.random() < 0.5:
            return
        topic = self._chance.choice(topics)
        reply = await self.ask(
            ApiKey.DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=[topic.name], timeout_ms=5000)
        )
        code = reply.responses[0].error_code
        if code in (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            self._missing.append(topic)
        self._told("deleted a topic", code, topic)

    def _told(self, what: str, code: int, topic: TopicPlan) -> None:
        if code:
            self.refused(what, code, topic=topic.name)
        else:
            self.done(what, topic=topic.name)
