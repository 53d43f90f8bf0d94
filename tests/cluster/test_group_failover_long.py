"""As `test_group_failover`, with the other clients and faults."""

from collections.abc import Callable

import pytest

from riverlog.testing import Cluster
from tests.cluster.group_members import (
    Member,
    aiokafka,
    confluent,
    confluent_consumer_protocol,
    goes_on,
    hold,
    kafka_python,
    kill,
    stop,
)


@pytest.mark.parametrize(
    ("read", "fault"),
    [
        (confluent, stop),
        (confluent, hold),
        (confluent_consumer_protocol, kill),
        (confluent_consumer_protocol, hold),
        *((read, fault) for read in (kafka_python, aiokafka) for fault in (kill, stop, hold)),
    ],
)
def test_a_group_goes_on(read: Callable[[Member], None], fault: Callable[[Cluster, int], None]) -> None:
    goes_on(read, fault)
