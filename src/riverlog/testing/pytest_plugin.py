"""Pytest fixtures for users' tests: `riverlog_broker`, one broker for the session, and `riverlog_topic`.

Installed with the package and loaded by every pytest run on the machine, so the broker is imported only when
a test asks for a fixture.

    def test_orders(riverlog_broker, riverlog_topic):
        producer = Producer({"bootstrap.servers": riverlog_broker.bootstrap_servers})
        producer.produce(riverlog_topic, b"hello")
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

if TYPE_CHECKING:
    from riverlog.testing.broker import Broker


@pytest.fixture(scope="session")
def riverlog_broker() -> Iterator["Broker"]:
    """A broker of its own for this session (with pytest-xdist: for this worker), on a free port."""
    from riverlog.testing.broker import Broker

    with Broker() as broker:
        yield broker


@pytest.fixture
def riverlog_topic(riverlog_broker: "Broker") -> str:
    """The name of a fresh topic with one partition."""
    topic = f"test-{uuid4().hex[:12]}"
    riverlog_broker.create_topic(topic)
    return topic
