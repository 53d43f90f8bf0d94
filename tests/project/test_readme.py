"""What the README shows is what happens."""

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def test_the_example_prints_all_that_was_produced_and_nothing_else(tmp_path: Path) -> None:
    [example] = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(example.splitlines()) <= 20
    done = subprocess.run(
        [sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    values = sorted(re.findall(r"b'(order \d+)'", done.stdout))
    assert values == [f"order {number}" for number in range(10)]
    assert not list(tmp_path.iterdir())
