"""What the guide to testing shows is what happens."""

import re
import subprocess
import sys
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "testing.md"


def test_its_examples_pass(tmp_path: Path) -> None:
    text = GUIDE.read_text()
    examples = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    for number, example in enumerate(examples):
        (tmp_path / f"test_example_{number}.py").write_text(example)
    [ini] = re.findall(r"```ini\n(.*?)```", text, re.DOTALL)
    (tmp_path / "pytest.ini").write_text(ini)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    tests = sum(len(re.findall(r"^ *(?:async )?def test_", each, re.MULTILINE)) for each in examples)
    assert f"\n{tests} passed" in done.stdout, done.stdout
