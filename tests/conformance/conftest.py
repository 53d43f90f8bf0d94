"""One broker for the session, or the cluster named by RIVERLOG_TEST_BOOTSTRAP (Apache Kafka, say)."""

import os
import uuid
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient

from tests.conformance.clients.aio import AioKafka
from tests.conformance.clients.confluent import ConfluentKafka, NewTopic
from tests.conformance.clients.interface import ClientUnderTest
from tests.conformance.clients.kafka_python import KafkaPython
from tests.conformance.clients.kcat import Kcat
from tests.waiting import eventually

MakeTopic = Callable[..., str]
CLIENTS: dict[str, type[ClientUnderTest]] = {
    "confluent-kafka": ConfluentKafka,
    "kafka-python": KafkaPython,
    "aiokafka": AioKafka,
    "kcat": Kcat,
}


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    given = os.environ.get("RIVERLOG_TEST_BOOTSTRAP")
    if given:
        yield given
        return
    from riverlog.testing import Broker

    # Records of years ago are written here, which a pass of retention would take away, once in five minutes.
    with Broker(log_retention_ms=-1) as broker:
        yield broker.bootstrap_servers


@pytest.fixture(scope="session")
def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


@pytest.fixture
def make_topic(admin: AdminClient) -> Iterator[MakeTopic]:
    """`make_topic(partitions=1, **config)` with dots as underscores; gone after the test."""
    made: list[str] = []

    def make(partitions: int = 1, **config: str) -> str:
        name = f"conformance-{uuid.uuid4().hex[:12]}"
        settings = {key.replace("_", "."): value for key, value in config.items()}
        admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result(20)
        made.append(name)
        eventually(lambda: name in admin.list_topics(timeout=20).topics)
        return name

    yield make
    if made:
        for future in admin.delete_topics(made).values():
            future.exception(20)


@pytest.fixture
def topic(make_topic: MakeTopic) -> str:
    return make_topic()


@pytest.fixture(params=list(CLIENTS))
def client(request: pytest.FixtureRequest, bootstrap: str) -> ClientUnderTest:
    kind: Callable[[str], ClientUnderTest] = CLIENTS[request.param]
    return kind(bootstrap)
