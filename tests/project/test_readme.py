"""What the README shows is what happens."""

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def examples() -> tuple[str, str]:
    """Tests for pytest, and a program."""
    tests, program = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    return tests, program


def test_the_tests_pass_with_nothing_but_the_package(tmp_path: Path) -> None:
    (tmp_path / "test_readme.py").write_text(examples()[0])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "2 passed" in done.stdout, done.stdout


def test_the_program_prints_all_that_was_produced_and_nothing_else(tmp_path: Path) -> None:
    _, example = examples()
    assert len(example.splitlines()) <= 20
    done = subprocess.run(
        [sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    values = sorted(re.findall(r"b'(order \d+)'", done.stdout))
    assert values == [f"order {number}" for number in range(10)]
    assert not list(tmp_path.iterdir())
