"""The demo really streams, and really fails when something is missing."""

import subprocess
import sys
from pathlib import Path

import pytest

from examples import orders_demo as demo

DEMO = Path(demo.__file__)


def test_the_demo_ends_well_and_shows_what_went_through() -> None:
    done = subprocess.run(
        [sys.executable, str(DEMO), "--orders", "3000", "--rate", "0", "--partitions", "3"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "counts and checksums are equal" in done.stdout
    assert "partition 2" in done.stdout
    assert done.stderr == ""


def test_the_sample_is_the_same_for_the_same_seed_and_has_late_duplicates() -> None:
    first = list(demo.orders(2000, seed=1))

    assert first == list(demo.orders(2000, seed=1))
    assert first != list(demo.orders(2000, seed=2))
    again = [order for order in first if order.is_duplicate]
    assert len(again) == len(first) - 2000 > 10
    assert {order.region for order in first} == set(demo.REGIONS)


@pytest.fixture
def streamed() -> demo.Stream:
    stream = demo.Stream("", "", 3)
    for order in demo.orders(100, seed=1):
        for passage in (stream.produced, stream.acknowledged, stream.consumed):
            passage.add(order.region, order.number % 3, order.document)
        stream.sent_twice += order.is_duplicate
        stream.arrived_twice += order.number in stream.numbers
        stream.numbers.add(order.number)
    return stream


def test_equal_sides_have_no_differences(streamed: demo.Stream) -> None:
    assert demo.differences(streamed, 100) == []


def test_what_is_missing_doubled_or_altered_is_a_difference(streamed: demo.Stream) -> None:
    streamed.consumed.parts["eu-central"].records -= 1
    streamed.acknowledged.parts["partition 1"].checksum += 1
    streamed.numbers.remove(7)
    streamed.arrived_twice += 1

    assert len(demo.differences(streamed, 100)) == 4
