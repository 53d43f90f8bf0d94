"""The table of long tests says what is there, and leaves a way through every layer to the others."""

from pathlib import Path

import pytest

from tests.long import LONG, is_long

ROOT = Path(__file__).parents[2]
FILES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py"))


@pytest.mark.parametrize("path", LONG)
def test_a_path_of_the_table_is_that_of_a_test(path: str) -> None:
    assert any(file.startswith(path) for file in FILES)


def test_every_folder_but_the_deliveries_has_tests_that_are_not_long() -> None:
    folders = {Path(file).parent.as_posix() for file in FILES}
    covered = {Path(file).parent.as_posix() for file in FILES if not is_long(file)}
    assert folders - covered == {"tests/delivery"}


def test_source_and_sink_are_tried_on_a_spark_in_the_first_run() -> None:
    on_spark = ("tests/spark/test_source_batch.py", "tests/spark/test_sink_spark.py")
    assert all(file in FILES and not is_long(file) for file in on_spark)
