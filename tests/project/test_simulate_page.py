"""The section that `make simulate` writes: the runs of each profile, added up."""

from collections import Counter

from scripts.simulate import Part, parts_of, read, section_of

_OUTPUT = """seed 7: BROKEN I4: a reader was given what was aborted (900 operations)
repeat it with: riverlog-sim run --seed 7
10 seeds, 1 failed; 9000 client operations, 0.90 CPU-seconds a seed
          12  fault kill
        1003  torn writes
"""


def _after(part: Part, first: int, commit: str) -> Part:
    told = read(_OUTPUT)
    assert told is not None
    assert told.failed == [("7", "I4")]
    return part.with_run(range(first, first + 10), told, commit)


def test_runs_of_a_profile_are_rows_and_what_they_came_across_is_added_up() -> None:
    standard = _after(Part([], Counter()), 0, "abc")
    section = section_of({"standard": standard})
    both = section_of({**parts_of(section), "cluster": _after(Part([], Counter()), 0, "def")})
    again = parts_of(both)
    again["standard"] = _after(again["standard"], 10, "0123 with changes")
    text = section_of(again)
    assert "20 seeds." in text
    assert "| abc | 0-9 | 10 | 7 (I4) | 9,000 |\n| 0123 with changes | 10-19 | 10 | 7 (I4) | 9,000 |" in text
    assert "fault kill 24; torn writes 2,006." in text
    assert "| def | 0-9 |" in text
    assert parts_of(text) == again, "what is written is read again"


def test_seeds_are_run_once_at_a_commit() -> None:
    part = _after(Part([], Counter()), 10, "abc")
    assert part.has_run(range(19, 30), "abc")
    assert part.has_run(range(11), "abc")
    assert not part.has_run(range(20, 30), "abc")
    assert not part.has_run(range(10), "abc")
    assert not part.has_run(range(10, 20), "def")


def test_a_run_that_did_not_end_tells_nothing() -> None:
    assert read("seed 7: BROKEN I4: a reader\n") is None
