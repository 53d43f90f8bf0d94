"""What the docs and the package promise of Spark's own demands: save modes, and its opinion of pandas."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from pyspark.sql.pandas.utils import require_minimum_pandas_version

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.py")),
]


def test_every_batch_write_that_is_shown_names_its_mode() -> None:
    """Spark refuses sinks in Python its default mode."""
    writes = {}
    for page in PAGES:
        text = page.read_text()
        for found in re.finditer(r"\.write\s*\.format\(\s*\"riverlog\"\s*\)", text):
            shown = text[found.start() :]
            # As far as the statement goes, or the name of a way to write in the midst of a sentence.
            end = re.search(r"save\(\)|`|\n\n", shown)
            writes[page.name, found.start()] = shown[: end.start() if end else None]
    assert len(writes) >= 2
    inline = {place: shown for place, shown in writes.items() if "option" in shown or "mode" in shown}
    assert inline
    assert [place for place, shown in inline.items() if '.mode("append")' not in shown] == []


def test_the_pandas_of_the_extra_is_one_that_pyspark_takes_without_a_word() -> None:
    # Warnings are errors in tests.
    require_minimum_pandas_version()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    [pandas] = [each for each in map(Requirement, extras["spark"]) if each.name == "pandas"]
    assert not pandas.specifier.contains("3.0.0")
    assert not pandas.specifier.contains("2.1.4")
