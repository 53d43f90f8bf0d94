"""Seeds of the simulator, run by its command: with one hash seed, so that each is the same everywhere."""

import re
import subprocess
import sys

_RUN_S = 280
_SUMMARY = re.compile(r"^(\d+) seeds, 0 failed; (\d+) client operations")


def operations_of(first: int, last: int, profile: str = "standard") -> int:
    """How many operations the clients of these seeds completed. Fails where a promise is broken."""
    simulate = [sys.executable, "-m", "riverlog.testing.simulation", "run", "--quick"]
    simulate += ["--profile", profile, "--seeds"]
    done = subprocess.run(
        [*simulate, f"{first}-{last}"], capture_output=True, text=True, check=False, timeout=_RUN_S
    )
    summary = _SUMMARY.match(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert summary is not None, done.stdout
    assert int(summary[1]) == last - first + 1
    return int(summary[2])
