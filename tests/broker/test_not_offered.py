"""What is deliberately not offered is not advertised, and clients that know it do without (ADR 12)."""

import io
import logging
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.api_versions import ApiVersionsRequest
from tests.broker.raw_client import RawClient

DESCRIBE_QUORUM, GET_TELEMETRY_SUBSCRIPTIONS, PUSH_TELEMETRY = 55, 71, 72


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def test_neither_a_quorum_nor_telemetry_is_advertised(broker: Broker) -> None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    with RawClient(broker) as client:
        offered = {each.api_key for each in client.ask(ApiKey.API_VERSIONS, 4, request).api_keys}
    assert ApiKey.PRODUCE in offered
    assert not offered & {DESCRIBE_QUORUM, GET_TELEMETRY_SUBSCRIPTIONS, PUSH_TELEMETRY}


def test_a_client_that_pushes_metrics_does_not_complain(broker: Broker) -> None:
    said = io.StringIO()
    logger = logging.getLogger("client of a broker without telemetry")
    logger.addHandler(logging.StreamHandler(said))
    broker.create_topic("measured")
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "enable.metrics.push": True}, logger=logger
    )
    for _ in range(
        20
    ):  # The client knows what the broker serves before the first, and has had its turns since.
        producer.produce("measured", b"a")
        assert producer.flush(10) == 0
    assert said.getvalue() == ""
    assert broker.node.metrics.value("riverlog_requests_refused_total") == 0  # type: ignore[attr-defined]
