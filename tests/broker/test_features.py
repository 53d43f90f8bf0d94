"""Levels of features are lowered and raised: what follows. What is answered is in the differential tests."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer

from riverlog.model.errors import ErrorCode
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.api_versions import ApiVersionsRequest
from riverlog.wire.messages.describe_transactions import DescribeTransactionsRequest
from riverlog.wire.messages.end_txn import EndTxnRequest
from riverlog.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.broker.raw_client import RawClient

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        running.create_topic("led")
        yield running


@pytest.fixture
def client(broker: Broker) -> Iterator[RawClient]:
    with RawClient(broker) as connected:
        yield connected


def _set_level(client: RawClient, feature: str, level: int, kind: int, *, validate_only: bool = False) -> int:
    update = FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=kind)
    request = UpdateFeaturesRequest(feature_updates=[update], validate_only=validate_only)
    error: int = client.ask(ApiKey.UPDATE_FEATURES, 2, request).error_code
    return error


def _features(client: RawClient) -> tuple[int, dict[str, int]]:
    """Epoch and levels that clients are told."""
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    reply = client.ask(ApiKey.API_VERSIONS, 4, request)
    levels = {each.name: each.max_version_level for each in reply.finalized_features}
    return reply.finalized_features_epoch, levels


@pytest.mark.parametrize("kind", [SAFE_DOWNGRADE, UNSAFE_DOWNGRADE])
def test_a_lowered_feature_is_told_to_clients_and_stays_so(
    broker: Broker, client: RawClient, kind: int
) -> None:
    epoch, levels = _features(client)
    assert levels == {"group.version": 1, "transaction.version": 2}
    assert _set_level(client, "transaction.version", 1, kind, validate_only=True) == ErrorCode.NONE
    assert _features(client) == (epoch, levels), "only tried"
    assert _set_level(client, "transaction.version", 1, kind) == ErrorCode.NONE
    assert _features(client) == (epoch + 1, {"group.version": 1, "transaction.version": 1})
    assert _set_level(client, "group.version", 0, kind) == ErrorCode.NONE
    broker.restart()
    with RawClient(broker) as again:
        assert _features(again) == (epoch + 2, {"transaction.version": 1})
        assert _set_level(again, "group.version", 1, UPGRADE) == ErrorCode.NONE
        assert _set_level(again, "transaction.version", 2, UPGRADE) == ErrorCode.NONE
        assert _features(again) == (epoch + 4, levels)


def test_without_transaction_version_no_epoch_is_raised_and_the_transaction_can_still_be_ended(
    client: RawClient, broker: Broker
) -> None:
    assert _set_level(client, "transaction.version", 0, SAFE_DOWNGRADE) == ErrorCode.NONE
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "t", "log_level": 0}
    )
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce("led", b"a")
    producer.flush(10)
    described = client.ask(
        ApiKey.DESCRIBE_TRANSACTIONS, 0, DescribeTransactionsRequest(transactional_ids=["t"])
    ).transaction_states[0]
    end = EndTxnRequest(
        transactional_id="t",
        producer_id=described.producer_id,
        producer_epoch=described.producer_epoch,
        committed=True,
    )
    assert client.ask(ApiKey.END_TXN, 5, end).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert client.ask(ApiKey.END_TXN, 4, end).error_code == ErrorCode.NONE


def test_without_group_version_the_consumer_protocol_is_refused_and_the_classic_one_works(
    client: RawClient, broker: Broker
) -> None:
    assert _set_level(client, "group.version", 0, SAFE_DOWNGRADE) == ErrorCode.NONE
    assert client.produce("led").error_code == ErrorCode.NONE
    config = {
        "bootstrap.servers": broker.bootstrap_servers,
        "auto.offset.reset": "earliest",
        "log_level": 0,
    }
    new = Consumer({**config, "group.id": "new", "group.protocol": "consumer"})
    new.subscribe(["led"])
    message = new.poll(10)
    assert message is not None
    error = message.error()
    assert error is not None
    assert "API version not supported" in error.str()
    new.close()
    old = Consumer({**config, "group.id": "old"})
    old.subscribe(["led"])
    message = old.poll(10)
    assert message is not None
    assert message.error() is None
    old.close()
