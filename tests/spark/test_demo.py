"""The sample of the demo, and what it says when something is missing. The demo as a whole is `make demo`."""

from collections import Counter

from examples.demo.orders import LATENESS, WINDOW, expected, sample
from examples.demo.proof import Line, _same


def test_the_sample_is_the_same_for_the_same_seed_and_has_every_kind_of_trouble() -> None:
    records = sample(2000, seed=1)

    assert records == sample(2000, seed=1)
    assert records != sample(2000, seed=2)
    wanted = expected(records)
    assert wanted.again > 10
    assert wanted.broken > 10
    assert wanted.sent == 2000 + wanted.again + wanted.broken
    assert sum(wanted.by_topic.values()) == 2000
    assert len(wanted.by_topic) == 5


def test_only_windows_that_are_over_are_expected() -> None:
    records = sample(20_000, seed=1)
    wanted = expected(records)
    latest = max(record.order.at for record in records if record.order is not None)

    assert wanted.windows_open > 0
    assert len(wanted.windows) > 10
    assert all(start + WINDOW + LATENESS <= latest for _, start in wanted.windows)


def test_what_is_missing_or_doubled_makes_a_line_wrong() -> None:
    wanted = Counter({(b"a", b"1"): 2, (b"b", b"2"): 1})

    assert _same("s", "t", wanted, [(b"a", b"1"), (b"b", b"2"), (b"a", b"1")]).is_right
    line = _same("s", "t", wanted, [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")])
    assert line == Line("s", "t", 3, 3, ("1 missing", "1 too many"))
    assert not line.is_right
