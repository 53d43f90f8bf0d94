"""What time it is for a broker, so that ages are told by its clock and not by that of whoever asks.

Riverlog's brokers tell it (`riverlog.clock.ms` among their settings); Apache Kafka has no API for it. But
coordinators list the transactions that are open for longer than a given time (KIP-994), by their own clocks,
and say when each began. So the age is found by asking: twice where their clock and ours agree, and otherwise
by halving, some twenty times, once for each coordinator. Where there is no transactional id either, our own
clock has to do.
"""

import time
from collections.abc import Callable
from typing import Final

from riverlog.cli.asking.brokers import Brokers
from riverlog.cli.asking.connection import Connection
from riverlog.cli.asking.transactions import Transaction, all_transactions
from riverlog.cli.failures import CommandError

AGREE_WITHIN_MS: Final = 1000
_BROKER: Final = 4
"""The kind of a resource in DescribeConfigs."""
_LONGEST_MS: Final = 2**45
"""About a thousand years: who counts a transaction as older than that does not know the question."""


class BrokerTime:
    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        self._ahead_ms: dict[int, int] = {}

    def age_ms(self, transaction: Transaction) -> int | None:
        """None for one that is not open. By our own clock where a broker is too old to be asked."""
        if not transaction.is_open or transaction.started_ms is None:
            return None
        coordinator = transaction.coordinator
        if coordinator is not None and coordinator not in self._ahead_ms:
            self._ahead_ms[coordinator] = self._ask(coordinator, transaction, transaction.started_ms)
        ahead_ms = 0 if coordinator is None else self._ahead_ms[coordinator]
        return max(0, _now_ms() + ahead_ms - transaction.started_ms)

    def now_ms(self) -> int:
        """As the broker with the lowest number tells. Else by any transactional id, one that never had a
        transaction too: it counts as begun at -1. By our own clock where there is none."""
        try:
            if (told_ms := self._told_ms()) is not None:
                return told_ms
            known = next(all_transactions(self._brokers), None)
        except CommandError:
            known = None
        if known is None or known.coordinator is None:
            return _now_ms()
        started_ms = -1 if known.started_ms is None else known.started_ms
        return _now_ms() + self._ask(known.coordinator, known, started_ms)

    def _told_ms(self) -> int | None:
        from riverlog.model.config.describe import CLOCK
        from riverlog.wire.apis import ApiKey
        from riverlog.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

        number, address = min(self._brokers.addresses().items())
        broker = DescribeConfigsResource(
            resource_type=_BROKER, resource_name=str(number), configuration_keys=[CLOCK]
        )
        reply = self._brokers.ask(
            address, ApiKey.DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=[broker])
        )
        for each in (entry for result in reply.results for entry in result.configs):
            if each.name == CLOCK and each.value is not None:
                return int(each.value)
        return None

    def _ask(self, coordinator: int, transaction: Transaction, started_ms: int) -> int:
        from riverlog.wire.apis import ApiKey
        from riverlog.wire.messages.list_transactions import ListTransactionsRequest

        address = self._brokers.addresses()[coordinator]

        def is_older(duration_ms: int) -> bool:
            request = ListTransactionsRequest(
                duration_filter=duration_ms, producer_id_filters=[transaction.producer_id]
            )
            listed = self._brokers.ask(address, ApiKey.LIST_TRANSACTIONS, request)
            return any(
                each.transactional_id == transaction.transactional_id for each in listed.transaction_states
            )

        return ahead_ms(is_older, lambda: _now_ms() - started_ms)


def now_ms(connection: Connection) -> int:
    """By our own clock where brokers cannot be asked by themselves, as with TLS."""
    try:
        with Brokers(connection) as brokers:
            return BrokerTime(brokers).now_ms()
    except CommandError:
        return _now_ms()


def ahead_ms(is_older: Callable[[int], bool], age_here_ms: Callable[[], int]) -> int:
    """By how much another clock is ahead of ours, within a second: `is_older` asks it of one transaction."""
    expected = age_here_ms()
    low, high = max(0, expected - AGREE_WITHIN_MS), max(0, expected + AGREE_WITHIN_MS)
    if expected > -AGREE_WITHIN_MS and (low == 0 or is_older(low)) and not is_older(high):
        return 0
    if is_older(_LONGEST_MS):
        return 0
    low = 0
    while is_older(high):
        low, high = high, 2 * max(high, AGREE_WITHIN_MS)
    while high - low > AGREE_WITHIN_MS:
        middle = (low + high) // 2
        low, high = (middle, high) if is_older(middle) else (low, middle)
    return (low + high) // 2 - age_here_ms()


def _now_ms() -> int:
    return int(time.time() * 1000)
