"""What the simulator has found in the broker: each case failed until it was mended, and was made small."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_CASES = sorted((Path(__file__).parent / "cases").glob("*.json"))


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.stem)
def test_a_case_that_failed_once_passes(case: Path) -> None:
    """In a process of its own, with the hash seed of the command line."""
    run = [sys.executable, "-m", "riverlog.testing.simulation", "run", "--case", str(case)]
    done = subprocess.run(run, capture_output=True, text=True, check=False, timeout=120, env=os.environ)
    assert done.returncode == 0, done.stdout + done.stderr
