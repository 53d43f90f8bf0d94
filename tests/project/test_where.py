"""The way in is true: every path that the docs for newcomers name exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDES = ["docs/where.md", "docs/architecture.md", "CONTRIBUTING.md"]
FOLDERS = ("src", "tests", "docs", "scripts", "benchmarks", "interop")
QUESTIONS_MIN = 40


def paths_in(text: str) -> list[str]:
    """What stands in backticks and begins with a folder of the repository."""
    quoted = re.findall(r"`([\w./-]+)`", text)
    return [each for each in quoted if each.split("/")[0] in FOLDERS and "/" in each]


def rows_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| I want")]


@pytest.mark.parametrize("guide", GUIDES)
def test_every_path_that_a_guide_names_exists(guide: str) -> None:
    named = paths_in((ROOT / guide).read_text())
    assert named
    assert [each for each in named if not (ROOT / each).exists()] == []


def test_where_answers_at_least_forty_questions_each_with_a_path() -> None:
    rows = rows_of((ROOT / "docs/where.md").read_text())
    assert len(rows) >= QUESTIONS_MIN
    assert [row for row in rows if not paths_in(row) and "`pyproject.toml`" not in row] == []


def test_every_module_that_the_architecture_names_exists() -> None:
    text = (ROOT / "docs/architecture.md").read_text()
    source = ROOT / "src/riverlog"
    rooms = {each.name for each in source.iterdir()}
    named = [
        each
        for each in re.findall(r"`([a-z_0-9]+(?:[./][a-z_0-9]+)+)`", text.replace(".py`", "`"))
        if re.split("[./]", each)[0] in rooms
    ]
    assert named
    missing = [
        each
        for each in named
        if not any((source / each.replace(".", "/")).with_suffix(ending).exists() for ending in ("", ".py"))
    ]
    assert missing == []


def test_every_file_in_the_pictures_of_the_architecture_exists() -> None:
    text = (ROOT / "docs/architecture.md").read_text()
    named = re.findall(r"(?<![\w/])((?:[a-z_0-9]+/)+[a-z_0-9]+\.py)", "".join(text.split("```")[1::2]))
    assert len(set(named)) > 20
    assert [each for each in named if not (ROOT / "src/riverlog" / each).exists()] == []
