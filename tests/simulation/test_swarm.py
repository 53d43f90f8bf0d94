"""Seeds, cases and the command line of the simulator."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from riverlog.testing.simulation import cases, own_faults
from riverlog.testing.simulation.case_files import from_json
from riverlog.testing.simulation.cases import draw
from riverlog.testing.simulation.command import run
from riverlog.testing.simulation.runs import run_case
from riverlog.testing.simulation.schedules import ScheduleError
from riverlog.testing.simulation.shrinking import shrink
from tests.simulation.seeds import operations_of

FIXED_SEEDS = [(first, first + 9) for first in range(0, 60, 10)]
"""`test_more_seeds` has the next."""


@pytest.mark.parametrize(("first", "last"), FIXED_SEEDS)
def test_no_promise_is_broken(first: int, last: int) -> None:
    assert operations_of(first, last) >= 600 * (last - first + 1)


def test_a_healthy_core_makes_progress_while_others_are_cut_off_for_ever() -> None:
    assert operations_of(0, 4, "liveness") >= 600 * 5


def test_no_promise_is_broken_by_three_nodes_on_one_ensemble() -> None:
    """36: the controller began to elect leaders while it stopped."""
    assert operations_of(32, 39, "cluster") >= 600 * 8


def test_a_fault_of_a_cluster_is_refused_where_there_is_one_node() -> None:
    case = json.loads(draw(1).to_json())
    case["faults"] = [{"at_s": 1, "fault": "cut_store", "for_s": 1, "way": "both"}]
    with pytest.raises(ScheduleError, match="cut_store needs several nodes"):
        from_json(json.dumps(case))


def test_a_fault_of_a_node_that_is_not_there_is_refused() -> None:
    case = json.loads(draw(1, "cluster").to_json())
    case["faults"] = [{"at_s": 1, "fault": "cold", "node": 3}]
    with pytest.raises(ScheduleError, match="no node 3"):
        from_json(json.dumps(case))


def test_a_case_is_the_same_after_a_way_through_json() -> None:
    case = draw(3)
    assert from_json(case.to_json()) == case


def test_an_unknown_fault_is_refused_with_the_names_that_are_known() -> None:
    case = json.loads(draw(1).to_json())
    case["faults"] = [{"at_s": 1, "fault": "earthquake"}]
    with pytest.raises(ScheduleError, match=r"unknown fault 'earthquake'; the faults are .*kill"):
        from_json(json.dumps(case))


@pytest.mark.parametrize(
    ("directories", "directory"), [("/data", "/data"), ("/data,/more", "/others"), ("", "/more")]
)
def test_a_dead_directory_that_is_not_one_of_several_is_refused(directories: str, directory: str) -> None:
    case = json.loads(draw(1).to_json())
    case["settings"]["log.dirs"] = directories
    case["faults"] = [{"at_s": 1, "fault": "dead_directory", "directory": directory}]
    with pytest.raises(ScheduleError, match=f"{directory} is not one of several directories"):
        from_json(json.dumps(case))


@pytest.mark.parametrize(
    ("fault", "share"),
    [("restored_store", "_RESTORED_STORE_SHARE"), ("renumbered_store", "_RENUMBERED_STORE_SHARE")],
)
def test_a_seed_that_does_not_get_a_fault_of_its_own_stream_is_as_if_there_were_none(
    monkeypatch: pytest.MonkeyPatch, fault: str, share: str
) -> None:
    drawn = {seed: draw(seed, "replicas") for seed in range(60)}
    with_it = {seed for seed, case in drawn.items() if _has(case, fault)}
    assert with_it
    monkeypatch.setattr(own_faults, share, 0)
    for seed, case in drawn.items():
        others = [each for each in case.faults if each["fault"] != fault]
        assert draw(seed, "replicas") == replace(case, faults=others)


def test_a_healthy_core_has_seeds_in_which_a_directory_is_dead() -> None:
    cases_with_it = [case for case in map(_liveness, range(20)) if _has(case, "dead_directory")]
    assert len(cases_with_it) >= 3
    assert all(case.settings["log.dirs"].count(",") == 2 for case in cases_with_it)


def test_a_seed_in_which_few_logs_may_be_open_closes_some(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = {seed: draw(seed) for seed in range(20)}
    with_few = [each for each in drawn.values() if "riverlog.open.logs.max" in each.settings]
    outcomes = [run_case(each) for each in with_few]
    assert [each.violation for each in outcomes] == [None] * len(with_few)
    assert sum(each.counts["logs closed"] for each in outcomes) >= 3
    monkeypatch.setattr(own_faults, "_FEW_OPEN_LOGS_SHARE", 0)
    assert {seed for seed, case in drawn.items() if draw(seed) != case} == {each.seed for each in with_few}


def _liveness(seed: int) -> cases.Case:
    return draw(seed, "liveness")


def _has(case: cases.Case, fault: str) -> bool:
    return any(each["fault"] == fault for each in case.faults)


def test_a_fault_after_the_end_is_refused() -> None:
    case = json.loads(draw(1).to_json())
    case["faults"] = [{"at_s": 1000, "fault": "cold"}]
    with pytest.raises(ScheduleError, match="after the chaos"):
        from_json(json.dumps(case))


def test_a_fault_that_lacks_something_is_refused() -> None:
    case = json.loads(draw(1).to_json())
    case["faults"] = [{"at_s": 1, "fault": "kill"}]
    with pytest.raises(ScheduleError, match="kill lacks for_s"):
        from_json(json.dumps(case))


def test_a_case_of_another_version_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = json.loads(draw(1).to_json())
    case["version"] = cases.VERSION + 1
    path = tmp_path / "case.json"
    path.write_text(json.dumps(case))
    assert run(["run", "--case", str(path)]) == 2
    assert "reads version 1" in capsys.readouterr().err


def test_shrinking_leaves_what_the_violation_needs() -> None:
    case = draw(7)
    needed = [case.faults[1], case.faults[-1]]
    client = case.clients[2]

    def invariant_of(candidate: cases.Case) -> str | None:
        holds = all(each in candidate.faults for each in needed) and client in candidate.clients
        return "I1" if holds else None

    small = shrink(case, invariant_of)
    assert small.faults == needed
    assert small.clients == [client]
    assert small.chaos_s <= case.chaos_s


def test_a_failing_case_prints_the_command_that_repeats_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A broker that has no directory cannot start."""
    case = json.loads(draw(1).to_json())
    case["settings"] = {"log.dirs": ""}
    path = tmp_path / "case.json"
    path.write_text(json.dumps(case))
    assert run(["run", "--case", str(path)]) == 1
    printed = capsys.readouterr().out
    assert "BROKEN I16" in printed
    assert f"repeat it with: riverlog-sim run --case {path}" in printed
