"""The daemon of `pipeline run`: what tasks need is imported before it forks, and forks of it can use it."""

import subprocess
import sys

PROGRAM = """
import os, sys, threading
from riverlog.spark.worker_daemon import AHEAD, import_ahead
import_ahead()
assert all(name in sys.modules for name in AHEAD), [name for name in AHEAD if name not in sys.modules]
assert threading.active_count() == 1
children = []
for _ in range(4):
    if (child := os.fork()) == 0:
        import pyarrow as pa
        table = pa.table({"value": [b"x" * 1000] * 10_000})
        os._exit(0 if table.filter(pa.compute.equal(table["value"], b"x" * 1000)).num_rows == 10_000 else 1)
    children.append(child)
sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""


def test_what_is_imported_ahead_can_be_used_by_those_that_are_forked() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
