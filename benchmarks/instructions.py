"""`python -m benchmarks.instructions OTHER_SOURCE [CASE ...]`: instructions per request, of two source trees.

Both brokers run under valgrind's callgrind, one after the other, and are asked the same. Instructions of user
space are counted, so that a busy machine changes little; the least of several rounds is taken, since now and
then the broker's own periodic work falls into one. What the kernel does is not in the figure.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks import load
from benchmarks.instruction_cases import CASES, Case

_SOURCE = Path(__file__).parent.parent / "src"
_SETTINGS = {
    "log.retention.ms": "-1",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
_ROUNDS = 3
_ASIDE_S = 0.1  # Until what a request leaves to do behind its reply is done.


class CountedBroker:
    def __init__(self, source: Path, directory: Path) -> None:
        self._directory = directory
        command = ["valgrind", "-q", "--tool=callgrind", "--instr-atstart=no"]
        command += [f"--callgrind-out-file={directory / 'counted'}", f"--vgdb-prefix={directory / 'vgdb'}"]
        command += [sys.executable, "-m", "riverlog", "serve"]
        command += ["--data-dir", str(directory / "data"), "--listen", "127.0.0.1:0"]
        for name, value in _SETTINGS.items():
            command += ["--set", f"{name}={value}"]
        environment = os.environ | {"PYTHONPATH": str(source), "PYTHONHASHSEED": "0"}
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert self._process.stdout is not None
        host, _, port = self._process.stdout.readline().strip().rpartition(" ")[2].rpartition(":")
        self.address = (host, int(port))
        self._tell("instrumentation on")
        self._dumps = 0

    def count(self, work: Callable[[], object]) -> int:
        """Instructions of the broker while the work is done."""
        self._tell("zero")
        work()
        time.sleep(_ASIDE_S)
        self._tell("dump")
        self._dumps += 1
        text = (self._directory / f"counted.{self._dumps}").read_text()
        total = re.search(r"^(?:totals|summary): (\d+)", text, re.MULTILINE)
        assert total is not None
        return int(total[1])

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=120)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _tell(self, command: str) -> None:
        prefix = f"--vgdb-prefix={self._directory / 'vgdb'}"
        subprocess.run(["vgdb", prefix, *command.split()], check=True, capture_output=True, timeout=120)


@contextmanager
def _broker(source: Path) -> Iterator[CountedBroker]:
    with tempfile.TemporaryDirectory() as directory:
        broker = CountedBroker(source, Path(directory))
        try:
            yield broker
        finally:
            broker.stop()


def measure(source: Path, cases: list[Case]) -> dict[str, float]:
    """Instructions per request of each case."""
    counted = {}
    with _broker(source) as broker:
        for case in cases:
            with load.connect(broker.address) as client, load.connect(broker.address) as other:
                step = case.prepare(client, other)
                _repeat(step, case.warm_up)
                work = partial(_repeat, step, case.times)
                counted[case.name] = min(broker.count(work) for _ in range(_ROUNDS)) / case.times
    return counted


def _repeat(step: Callable[[], object], times: int) -> None:
    for _ in range(times):
        step()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions", description=__doc__)
    parser.add_argument("other", type=Path, help="the src directory of the tree to compare with")
    parser.add_argument("case", nargs="*", help="which ones, by the beginning of their names; all by default")
    arguments = parser.parse_args()
    wanted = tuple(arguments.case) or ("",)
    cases = [case for case in CASES if case.name.startswith(wanted)]
    before, now = measure(arguments.other, cases), measure(_SOURCE, cases)
    print("| request | before | now | ratio |\n|---|---|---|---|")
    for case in cases:
        ratio = now[case.name] / before[case.name]
        print(f"| {case.name} | {before[case.name]:,.0f} | {now[case.name]:,.0f} | {ratio:.3f} |")


if __name__ == "__main__":
    main()
