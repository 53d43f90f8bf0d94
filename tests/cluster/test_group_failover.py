"""Groups go on at another coordinator, from the offsets that were committed. More clients and faults:
`test_group_failover_long`."""

from tests.cluster.group_members import confluent, confluent_consumer_protocol, goes_on, kill, stop


def test_a_classic_group_goes_on_when_its_coordinator_is_killed() -> None:
    goes_on(confluent, kill)


def test_a_group_of_the_consumer_protocol_goes_on_when_its_coordinator_is_stopped() -> None:
    goes_on(confluent_consumer_protocol, stop)
