"""The sample: orders of several regions, some of them twice and late, some broken, as real sources send them.

The same seed gives the same orders. From the list everything that must come out can be worked out without
Spark: that is what `expected` does.
"""

import json
import random
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

REGIONS = {"eu-central": 0.34, "us-east": 0.28, "ap-south": 0.22, "sa-east": 0.11, "af-south": 0.05}
ELSEWHERE = "elsewhere"
ROUTED = ("eu-central", "us-east", "ap-south", "sa-east")
"""Regions with a topic of their own; the others share one."""
START = datetime(2026, 3, 1, 8, tzinfo=UTC)
SPACING = timedelta(seconds=0.1)
"""Between orders, by their own time, which runs far quicker than the clock while the demo does."""
JITTER_S = 45
"""Orders come out of order, by up to this much."""
WINDOW = timedelta(minutes=5)
LATENESS = timedelta(minutes=10)
_DUPLICATE_SHARE = 0.03
_DUPLICATE_DELAY_ORDERS = 200
_BROKEN_SHARE = 0.02


@dataclass(frozen=True, slots=True)
class Order:
    number: int
    region: str
    customer: str
    cents: int
    at: datetime

    @property
    def document(self) -> bytes:
        fields = {"id": self.number, "region": self.region, "cents": self.cents, "at": self.at.isoformat()}
        return json.dumps(fields).encode()


@dataclass(frozen=True, slots=True)
class Record:
    """What is sent: a whole order, the same once more, or something broken."""

    key: bytes
    value: bytes
    order: Order | None
    is_again: bool = False


@dataclass(slots=True)
class Expected:
    """Counted from the sample alone."""

    sent: int = 0
    broken: int = 0
    again: int = 0
    by_topic: Counter[str] = field(default_factory=Counter)
    windows: Mapping[tuple[str, datetime], tuple[int, int]] = field(default_factory=dict)
    """Orders and cents of each region and window that is over."""
    windows_open: int = 0


def sample(count: int, seed: int) -> list[Record]:
    dice = random.Random(seed)
    records: list[Record] = []
    late: list[tuple[int, Record]] = []
    for number in range(count):
        region = dice.choices(list(REGIONS), list(REGIONS.values()))[0]
        at = START + number * SPACING - timedelta(seconds=dice.randrange(JITTER_S))
        customer = f"{region}/{dice.randrange(500):03}"
        order = Order(number, region, customer, dice.randrange(99, 50_000), at)
        records.append(Record(customer.encode(), order.document, order))
        if dice.random() < _DUPLICATE_SHARE:
            late.append(
                (number + _DUPLICATE_DELAY_ORDERS, Record(customer.encode(), order.document, order, True))
            )
        if dice.random() < _BROKEN_SHARE:
            records.append(Record(customer.encode(), _broken(dice, order), None))
        while late and late[0][0] <= number:
            records.append(late.pop(0)[1])
    return [*records, *(record for _, record in late)]


def _broken(dice: random.Random, order: Order) -> bytes:
    whole = order.document
    kinds = (
        whole[: dice.randrange(1, len(whole) - 1)],
        whole.replace(b'"cents": ', b'"cents": "many", "was": '),
        whole.replace(b'"region"', b'"regoin"'),
        whole + b"}",
    )
    return dice.choice(kinds)


def topic_of(region: str) -> str:
    return f"orders.{region if region in ROUTED else ELSEWHERE}"


def expected(records: list[Record]) -> Expected:
    orders = {record.order.number: record.order for record in records if record.order is not None}
    windows: defaultdict[tuple[str, datetime], tuple[int, int]] = defaultdict(lambda: (0, 0))
    for order in orders.values():
        place = order.region, START + (order.at - START) // WINDOW * WINDOW
        count, cents = windows[place]
        windows[place] = count + 1, cents + order.cents
    # Spark closes a window when the latest time that it has seen is that much past its end.
    watermark = max(order.at for order in orders.values()) - LATENESS
    over = {place: figures for place, figures in windows.items() if place[1] + WINDOW <= watermark}
    return Expected(
        sent=len(records),
        broken=sum(record.order is None for record in records),
        again=sum(record.is_again for record in records),
        by_topic=Counter(topic_of(order.region) for order in orders.values()),
        windows=over,
        windows_open=len(windows) - len(over),
    )
