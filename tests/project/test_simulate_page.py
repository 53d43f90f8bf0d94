"""The section that `make simulate` writes: the last run of each profile."""

from scripts.simulate import read, told_of, with_profile

_OUTPUT = """seed 7: BROKEN I4: a reader was given what was aborted (900 operations)
repeat it with: riverlog-sim run --seed 7
10 seeds, 1 failed; 9000 client operations, 0.90 CPU-seconds a seed
          12  fault kill
           3  torn writes
"""


def test_a_profile_is_written_anew_and_the_others_stay() -> None:
    told = read(_OUTPUT)
    assert told is not None
    assert told.failed == [("7", "I4")]
    assert told.counts == {"fault kill": 12, "torn writes": 3}
    first = with_profile("", "standard", told_of("standard", "0-9", told, "abc"))
    both = with_profile(first, "cluster", told_of("cluster", "0-9", told, "def"))
    assert both.count("### Profile") == 2
    again = with_profile(both, "standard", told_of("standard", "5-14", told, "ghi"))
    assert "Commit ghi, seeds 5-14: 10 run" in again
    assert "Commit abc" not in again
    assert "Commit def" in again


def test_a_run_that_did_not_end_tells_nothing() -> None:
    assert read("seed 7: BROKEN I4: a reader\n") is None
