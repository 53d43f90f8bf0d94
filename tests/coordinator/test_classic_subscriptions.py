"""What consumers of a classic group subscribe to, and what that means for committed offsets."""

import pytest

from riverlog.coordinator.groups.classic import protocols as classic_protocols
from riverlog.coordinator.groups.classic.requests import Leaver, MemberProtocol, Protocols
from riverlog.model.errors import ErrorCode
from riverlog.wire.codec import encode
from riverlog.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from tests.coordinator.classic_driver import Driver


def subscription(*topics: str) -> Protocols:
    data = encode(ConsumerProtocolSubscription(topics=list(topics)), 1)
    return (MemberProtocol("range", b"\x00\x01" + data),)


def test_what_consumers_subscribe_to_protects_its_offsets() -> None:
    driver = Driver()
    [only] = driver.stable(protocols=subscription("orders", "payments"))
    assert [driver.group.is_subscribed(topic) for topic in ("orders", "payments", "x")] == [True, True, False]
    assert driver.group.offset_ages_from("x", 5) == 5
    driver.load()
    assert driver.group.is_subscribed("orders")
    driver.leave(Leaver(only))
    assert not driver.group.is_subscribed("orders")
    assert driver.group.offset_ages_from("orders", 5) == driver.now_ms


def test_offsets_do_not_age_while_nobody_knows_what_is_read() -> None:
    driver = Driver()
    driver.stable()
    assert driver.group.offset_ages_from("x", 5) is None
    assert driver.group.refuse_offset_delete() is None
    other = Driver()
    other.stable(protocol_type="connect")
    assert other.group.offset_ages_from("x", 5) is None
    assert other.group.refuse_offset_delete() is ErrorCode.NON_EMPTY_GROUP


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff\xff", b"\x00\x01\x00\x00\x00\x09", b"\x00\x00\x7f"])
def test_what_is_no_subscription_is_not_read(data: bytes) -> None:
    assert classic_protocols.read_subscription(data) is None
    assert classic_protocols.subscribed_topics([data]) is None


def test_a_subscription_of_a_newer_version_is_read_as_far_as_it_is_known() -> None:
    data = encode(ConsumerProtocolSubscription(topics=["orders"]), 3)
    assert classic_protocols.subscribed_topics([b"\x00\x63" + data + b"more"]) == frozenset({"orders"})
