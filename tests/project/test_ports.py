"""What a node does follows from what is passed into it: the real things are imported in few places."""

import subprocess
import sys

import pytest

CHECK = ["check", "--no-cache", "--output-format=concise", "--select=TID251", "--stdin-filename"]
PORTS = {
    "import time": "riverlog.model.clock.Clock",
    "from time import monotonic": "riverlog.model.clock.Clock",
    "import random": "random.Random passed in",
    "from uuid import uuid4": "new_id",
    "import socket": "riverlog.model.network.Network",
    "import threading": "riverlog.model.executor.Executor",
    "from concurrent.futures import ThreadPoolExecutor": "riverlog.model.executor.Executor",
    "from asyncio import to_thread": "riverlog.model.executor.Executor",
}


@pytest.mark.parametrize("line", PORTS)
@pytest.mark.parametrize("package", ["broker/net", "coordinator/runtime", "metadata", "storage/log"])
def test_a_module_below_the_edge_that_takes_the_real_thing_is_told_which_port_to_use(
    package: str, line: str
) -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "ruff", *CHECK, f"src/riverlog/{package}/anything.py", "-"],
        input=f"{line}\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 1
    assert PORTS[line] in checked.stdout
