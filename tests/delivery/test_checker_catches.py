"""The checker on a broker that works and on one with a safeguard taken out: silent there, loud here.

Real clients throughout. What is taken out is the very line that should have held.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from riverlog.broker.produce.transaction_admission import TransactionAdmission
from riverlog.storage.producers import state as producer_state
from riverlog.storage.producers.state import ProducerStates
from riverlog.testing import Broker
from riverlog.testing.history import Ended, Event, Kind, Outcome, Place, Sent, check, describe
from tests.delivery.control import client_settings
from tests.delivery.lossy_proxy import LossyProxy
from tests.delivery.reading import as_one_reader, read_all
from tests.delivery.workers import until

TOPIC = "checked"
AT = Place(TOPIC, 0)


class Sender:
    """A producer that remembers what it sent and what it was told."""

    def __init__(self, name: str, bootstrap: str, **settings: object) -> None:
        self.name = name
        self.producer = Producer(client_settings(bootstrap, linger_ms=0, **settings))
        self.events: list[Event] = []

    def send(self, value: str, transaction: str | None = None) -> None:
        """Send one record and wait for what becomes of it."""
        told: list[tuple[KafkaError | None, int | None]] = []

        def note(error: KafkaError | None, message: Message) -> None:
            told.append((error, message.offset()))

        def is_told() -> bool:
            with suppress(KafkaException):  # A fenced producer says so at every call.
                self.producer.poll(0.1)
            return bool(told)

        self.producer.produce(TOPIC, value, partition=0, on_delivery=note)
        until(is_told, f"{value} is acknowledged or refused")
        [(error, offset)] = told
        outcome, at = (Outcome.OK, offset) if error is None else (Outcome.UNKNOWN, None)
        self.events.append(Sent(self.name, AT, value, outcome, at, transaction))


@pytest.fixture
def proxy() -> Iterator[LossyProxy]:
    with LossyProxy() as proxy:
        yield proxy


@pytest.fixture
def broker(proxy: LossyProxy) -> Iterator[Broker]:
    with Broker(advertised_listeners=f"PLAINTEXT://{proxy.address}") as broker:
        bound = next(iter(broker.node.addresses.values()))
        proxy.target = (bound.host, bound.port)
        broker.create_topic(TOPIC)
        yield broker


def lost_replies(broker: Broker, proxy: LossyProxy) -> list[Event]:
    """An idempotent producer that has to repeat itself."""
    sender = Sender("p", broker.bootstrap_servers, enable_idempotence=True)
    for number in range(8):
        if number % 3 == 1:
            proxy.lose(1)
        sender.send(str(number))
    assert proxy.lost == 3, "no reply was lost, so nothing was repeated"
    return sender.events


def zombie(broker: Broker, proxy: LossyProxy) -> list[Event]:
    """A transactional producer goes on while its successor has taken over."""
    old = Sender("old", broker.bootstrap_servers, transactional_id="t", max_in_flight=1)
    new = Sender("new", broker.bootstrap_servers, transactional_id="t")
    old.producer.init_transactions(20)
    old.producer.begin_transaction()
    old.send("a", "old transaction")
    new.producer.init_transactions(20)
    new.producer.begin_transaction()
    new.send("b", "new transaction")
    old.send("c", "old transaction")
    new.producer.commit_transaction(20)
    with pytest.raises(KafkaException):
        old.producer.commit_transaction(20)
    ends = [Ended("old", "old transaction", Outcome.FAILED), Ended("new", "new transaction", Outcome.OK)]
    return [*old.events, *new.events, *ends]


def take_out_deduplication(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProducerStates, "decide_duplicate", lambda *_: None)
    patch.setattr(producer_state, "_decide_sequence", lambda *_: None)


def take_out_fencing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProducerStates, "decide", lambda *_, **__: None)
    patch.setattr(TransactionAdmission, "admit", lambda *_: {})


Story = Callable[[Broker, LossyProxy], list[Event]]
STORIES: list[tuple[Story, Callable[[pytest.MonkeyPatch], None], Kind]] = [
    (lost_replies, take_out_deduplication, Kind.DUPLICATE),
    (zombie, take_out_fencing, Kind.ABORTED_READ),
]


@pytest.mark.parametrize("story", [story for story, _, _ in STORIES])
def test_a_broker_with_its_safeguards_shows_no_anomaly(
    broker: Broker, proxy: LossyProxy, story: Story
) -> None:
    events = story(broker, proxy)
    anomalies = check([*events, *as_one_reader(read_all(broker.bootstrap_servers, TOPIC, 1))])
    assert not anomalies, describe(anomalies)


@pytest.mark.parametrize(("story", "take_out", "kind"), STORIES)
def test_a_safeguard_taken_out_is_found_by_the_checker(
    broker: Broker,
    proxy: LossyProxy,
    monkeypatch: pytest.MonkeyPatch,
    story: Story,
    take_out: Callable[[pytest.MonkeyPatch], None],
    kind: Kind,
) -> None:
    take_out(monkeypatch)
    events = story(broker, proxy)
    anomalies = check([*events, *as_one_reader(read_all(broker.bootstrap_servers, TOPIC, 1))])
    assert kind in {anomaly.kind for anomaly in anomalies}, describe(anomalies)
