"""Cases and traces from files: what cannot be run is told in a sentence."""

import json
from dataclasses import asdict
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from riverlog.testing.simulation import trace
from riverlog.testing.simulation.case_files import from_json
from riverlog.testing.simulation.cases import Case, draw
from riverlog.testing.simulation.command import run
from riverlog.testing.simulation.runs import run_case
from riverlog.testing.simulation.schedules import ScheduleError

_KILL = {"at_s": 1, "fault": "kill", "for_s": 1}
_CUT = {"at_s": 1, "fault": "cut", "for_s": 1, "hosts": [], "way": "both"}
_READER = {"name": "reader", "kind": "consumer", "topic": "plain"}


def changed(**changes: Any) -> str:
    return json.dumps({**asdict(draw(1)), **changes})


def test_a_trace_begins_with_the_case_that_it_is_of() -> None:
    case, written = Case(3, chaos_s=1.0, faults=[_KILL]), StringIO()
    hash_before = run_case(case, written).trace_hash
    again = from_json(written.getvalue())
    assert again == case
    assert run_case(again).trace_hash == hash_before


def test_a_trace_of_another_version_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text('{"trace": 1, "seed": 3}\n{"t": 0.0, "step": 0, "who": "broker", "what": "starts"}\n')
    assert run(["run", "--case", str(path)]) == 2
    told = capsys.readouterr().err
    assert f"the trace is of version 1; this simulator reads version {trace.VERSION}" in told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "a case is a JSON object"),
        ("[]", "a case is a JSON object"),
        ('{"version": 1}', "a case has a seed"),
        (changed() + "{}", "more stands behind it"),
        (changed(earthquakes=2), "a case has no earthquakes"),
        (changed(seed="7"), "seed of a case is of type int, and not '7'"),
        (changed(faults=[1]), "faults of a case consists of dict"),
        (changed(settings={"node.id": 1}), "settings of a case consists of str"),
        (changed(profile="chaos"), "unknown profile 'chaos'"),
        (changed(nodes=0), "a case has nodes, not 0"),
    ],
)
def test_what_is_no_case_is_refused(text: str, told: str) -> None:
    with pytest.raises(ScheduleError, match=told):
        from_json(text)


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ({**_KILL, "at_s": -1}, "begins or lasts before time"),
        ({**_KILL, "for_s": "long"}, "for_s of the fault kill is of type int or float, and not 'long'"),
        ({**_KILL, "node": 1}, "no node 1"),
        ({**_CUT, "way": "around"}, "way of the fault cut is one of to, from, both, and not 'around'"),
        ({**_CUT, "hosts": "admin"}, "hosts of the fault cut is of type list"),
        (
            {"at_s": 1, "fault": "lost_node", "how": "melted", "way": "to"},
            "how of the fault lost_node is one",
        ),
    ],
)
def test_a_fault_that_cannot_be_is_refused(fault: dict[str, Any], told: str) -> None:
    with pytest.raises(ScheduleError, match=told):
        from_json(changed(faults=[fault]))


@pytest.mark.parametrize(
    ("clients", "told"),
    [
        ([{"name": "a", "kind": "robot"}], "unknown kind of client 'robot'; the kinds are admin"),
        ([{"kind": "admin"}], "one of kind admin has None"),
        ([_READER, _READER], "one of kind consumer has 'reader'"),
        ([{"name": "a", "kind": "transactor"}], "the client a lacks is_newer"),
        ([{**_READER, "topic": "none"}], "the client reader uses 'none'; the topics are plain"),
    ],
)
def test_a_client_that_cannot_be_is_refused(clients: list[dict[str, Any]], told: str) -> None:
    with pytest.raises(ScheduleError, match=told):
        from_json(changed(clients=clients))


@pytest.mark.parametrize(
    ("links", "told"), [({"colour": 1}, "links have no colour"), ({"latency_s": -1}, "latency_s of links is")]
)
def test_a_network_that_cannot_be_is_refused(links: dict[str, float], told: str) -> None:
    with pytest.raises(ScheduleError, match=told):
        from_json(changed(links=links))
