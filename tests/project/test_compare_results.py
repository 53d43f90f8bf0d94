"""What the side-by-side harness makes of its samples: medians, ratios, verdicts, JSON, tables. No times."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from benchmarks.compare import plan, plots, report, results, table
from benchmarks.compare.aims import AIMS, Aim, verdicts
from benchmarks.compare.metrics import METRICS
from benchmarks.compare.results import Failure, Result, Sample, Spread

TARGETS = {"riverlog": "ours", "kafka": "theirs", "kafka-tuned": "theirs, other heap"}


def result(*samples: Sample) -> Result:
    made = Result(
        started="2026-01-01 00:00 UTC",
        command="python -m benchmarks.compare",
        commit="0123456789abcdef",
        repeats=5,
        scale=1.0,
        machine={
            "processor": "one",
            "cores": 2,
            "memory_gb": 8.0,
            "system": "Linux",
            "filesystem": "ext4",
            "free_gb": 10,
            "load_at_start": 0.1,
        },
        versions={"riverlog": "0.1.0"},
        settings={"log.cleaner.backoff.ms": "300"},
        targets=TARGETS,
        samples=list(samples),
    )
    made.cases = {sample.case: f"words of {sample.case}" for sample in samples}
    return made


def samples(case: str, metric: str, **values: list[float]) -> list[Sample]:
    return [
        Sample(case, target.replace("_", "-"), repeat, {metric: value}, 0.5)
        for target, every in values.items()
        for repeat, value in enumerate(every)
    ]


def all_aims_measured(ratio: float) -> Result:
    pairs = {(aim.case, aim.metric) for aim in AIMS}
    return result(
        *(
            each
            for case, metric in sorted(pairs)
            for each in samples(case, metric, riverlog=[ratio, ratio, ratio], kafka=[1.0, 1.0, 1.0])
        )
    )


@given(st.lists(st.floats(0.001, 1e9), min_size=1))
def test_a_median_lies_between_the_extremes_that_are_kept_with_it(values: list[float]) -> None:
    spread = Spread.of(values)
    assert min(values) == spread.low <= spread.median <= spread.high == max(values)
    assert spread.count == len(values)


def test_a_ratio_is_that_of_the_medians_so_one_bad_sample_does_not_move_it() -> None:
    some = result(*samples("c", "mb_s", riverlog=[100, 300, 1], kafka=[50, 50, 5000]))
    assert some.ratio("c", "mb_s", "riverlog", "kafka") == 2.0


def test_what_was_not_measured_on_both_has_no_ratio() -> None:
    some = result(*samples("c", "mb_s", riverlog=[100]))
    assert some.ratio("c", "mb_s", "riverlog", "kafka") is None
    assert some.spread("c", "kafka", "mb_s") is None


@pytest.mark.parametrize(
    ("aim", "ratio", "met"),
    [
        (Aim("more", "c", "mb_s", at_least=1.3), 1.3, True),
        (Aim("more", "c", "mb_s", at_least=1.3), 1.29, False),
        (Aim("less", "c", "p50_ms", at_most=0.8), 0.8, True),
        (Aim("less", "c", "p50_ms", at_most=0.8), 0.81, False),
    ],
)
def test_an_aim_is_met_at_its_bound_and_on_the_better_side_of_it(aim: Aim, ratio: float, met: bool) -> None:
    assert aim.is_met_by(ratio) is met


def test_an_aim_with_a_unit_is_about_the_figure_and_needs_no_kafka() -> None:
    some = result(*samples("replicated-many", "start_s", riverlog=[2.0, 3.0, 4.0]))
    [verdict] = [each for each in verdicts(some) if each.measured is not None]
    assert (verdict.measured, verdict.ratio, verdict.is_met) == (3.0, None, True)
    [row] = [each for each in table.aim_rows(some) if each[-2] == "yes"]
    assert row[1:6] == ("at most 3 s", "3 s ± 33%", "", "", "")


def test_brokers_of_one_host_are_judged_by_their_own_samples() -> None:
    values = {"riverlog": [1.0], "riverlog_shared": [2.0]}
    some = result(*samples("replicated-kill-restart", "missed_s", **values))
    told = {each.aim.target: each.is_met for each in verdicts(some) if each.measured is not None}
    assert told == {"riverlog": True, "riverlog-shared": False}


def test_every_aim_names_a_case_that_exists_and_a_metric_with_words() -> None:
    names = {case.name for case in (*plan.cases(), *plan.replicated_cases())}
    assert [aim.case for aim in AIMS if aim.case not in names] == []
    assert [aim.metric for aim in AIMS if aim.metric not in METRICS] == []


def test_an_aim_asks_for_more_where_more_is_better_and_for_less_where_it_is_not() -> None:
    for aim in AIMS:
        assert (aim.at_least is not None) == METRICS[aim.metric].is_more_better, aim.words
        assert (aim.at_least is None) != (aim.at_most is None), aim.words


def test_an_aim_without_samples_is_a_row_that_says_so() -> None:
    rows = list(table.aim_rows(result()))
    assert len(rows) == len(AIMS)
    assert all("not measured" in row for row in rows)
    assert all(verdict.is_met is None for verdict in verdicts(result()))


def test_case_names_are_unique_and_a_prefix_or_a_pattern_chooses_them() -> None:
    names = [case.name for case in plan.cases()]
    assert len(set(names)) == len(names)
    assert [case.name for case in plan.chosen(["requests-c1"])] == ["requests-c1"]
    assert {case.name for case in plan.chosen(["latency"])} == {
        "latency-1000",
        "latency-10000",
        "latency-sync",
    }
    assert plan.chosen(["*-cold"])[0].name == "consume-1KB-none-p4-cold"
    assert plan.chosen(["no-such-case"]) == []


def test_a_result_is_read_as_it_was_kept(tmp_path: Path) -> None:
    kept = result(*samples("start", "start_s", riverlog=[0.3, 0.4], kafka=[3.0, 4.0]))
    kept.limits = {"memcpy_mb_s": [5000.0]}
    kept.failures = [Failure("compaction", "given", "needs the broker's files")]
    results.save(kept, tmp_path / "deep" / "compare.json")
    assert results.read(tmp_path / "deep" / "compare.json") == kept


def test_the_json_says_what_it_was_measured_on_and_holds_every_sample(tmp_path: Path) -> None:
    results.save(result(*samples("start", "start_s", riverlog=[0.3, 0.4], kafka=[3.0])), tmp_path / "r.json")
    document = json.loads((tmp_path / "r.json").read_text())
    assert {"format", "machine", "versions", "commit", "limits", "targets", "failures"} <= document.keys()
    assert [each["metrics"]["start_s"] for each in document["samples"]] == [0.3, 0.4, 3.0]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 99}'])
def test_what_is_no_result_is_refused_with_the_name_of_the_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(results.UnknownResultError, match=r"other\.json"):
        results.read(path)


def test_the_report_has_a_row_for_every_aim_and_leaves_the_rest_of_the_page_alone(tmp_path: Path) -> None:
    (tmp_path / "performance.md").write_text(f"# Mine\n{report.BEGIN}\nold\n{report.END}\n## Findings\n")
    report.write(all_aims_measured(1.0), tmp_path)
    page = (tmp_path / "performance.md").read_text()
    assert page.startswith("# Mine\n")
    assert page.endswith("## Findings\n")
    assert "\nold\n" not in page
    for aim in AIMS:
        assert f"| {aim.words} | {aim.text} |" in page
        assert f"--case {aim.case} |" in page


def test_the_plots_in_the_report_are_drawn_beside_it(tmp_path: Path) -> None:
    (tmp_path / "performance.md").write_text(f"{report.BEGIN}\n{report.END}\n")
    report.write(all_aims_measured(2.0), tmp_path)
    page = (tmp_path / "performance.md").read_text()
    drawn = sorted(path.name for path in (tmp_path / "performance").iterdir())
    assert drawn == ["aims.png", "growth-connections.png"]
    assert all(f"(performance/{name})" in page for name in drawn)


def test_a_page_without_marks_is_not_written_over() -> None:
    with pytest.raises(report.NoPlaceError):
        report.placed("# A page\n", "tables")


def test_growth_is_made_of_the_cases_that_differ_in_one_number() -> None:
    some = result(
        *samples("requests-c64", "requests_s", riverlog=[3.0]),
        *samples("requests-c1", "requests_s", riverlog=[1.0]),
        *samples("latency-1000", "p50_ms", riverlog=[1.0]),
    )
    assert plots.growth_points(some, "requests-c") == {1: "requests-c1", 64: "requests-c64"}


def test_the_share_of_the_machine_is_shown_for_throughput_only() -> None:
    some = result(*samples("consume-1KB-none-p4-hot", "mb_s", riverlog=[500.0], kafka=[250.0]))
    some.limits = {"sendfile_mb_s": [2000.0, 2000.0, 9.0]}
    assert table.share(some, "consume-1KB-none-p4-hot", "mb_s") == "25%"
    assert table.share(some, "consume-1KB-none-p4-hot", "broker_cpu_s_per_gb") == ""


def test_the_terminal_shows_every_case_ratio_and_failure() -> None:
    some = result(*samples("start", "start_s", riverlog=[0.5], kafka=[5.0]))
    some.failures = [Failure("compaction", "given", "needs the broker's files")]
    console = Console(width=200, record=True, file=None, quiet=False)
    with console.capture() as captured:
        table.show(some, console)
    shown = captured.get()
    assert "words of start" in shown
    assert "0.10x" in shown
    assert "compaction on given" in shown
