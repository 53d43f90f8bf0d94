"""Runs seeds of the simulator and writes down what was run, in a section of its own of docs/guarantees.md.

    python -m scripts.simulate --seeds 0-9999 -j 2
    python -m scripts.simulate --profile cluster --seeds 0-999

The section says of each profile the last run: seeds, commit, what failed, and what was come across.
`make soak` writes the rest of the page and leaves the section as it is.
"""

import argparse
import re
import subprocess
import sys
from typing import Final, NamedTuple

from scripts.soak import PAGE, SIMULATOR, commit_name, simulator_section

_SUMMARY: Final = re.compile(r"^(\d+) seeds, (\d+) failed; (\d+) client operations", re.MULTILINE)
_COUNT: Final = re.compile(r"^ +(\d+)  (.+)$", re.MULTILINE)
_FAILED: Final = re.compile(r"^seed (\d+): BROKEN (\w+)", re.MULTILINE)
_TITLE: Final = re.compile(r"^### Profile `(\w+)`$", re.MULTILINE)


class Told(NamedTuple):
    """What `riverlog-sim` says at the end."""

    seeds: int
    failed: list[tuple[str, str]]
    operations: int
    counts: dict[str, int]


def read(output: str) -> Told | None:
    """None when it did not come to its end."""
    summary = _SUMMARY.search(output)
    if summary is None:
        return None
    counts = {what: int(count) for count, what in _COUNT.findall(output)}
    return Told(int(summary[1]), _FAILED.findall(output), int(summary[3]), counts)


def told_of(profile: str, seeds: str, told: Told, commit: str) -> str:
    failed = ", ".join(f"{seed} ({invariant})" for seed, invariant in told.failed) or "none"
    counts = "; ".join(f"{what} {count:,}" for what, count in sorted(told.counts.items()))
    lines = [
        f"### Profile `{profile}`",
        f"Commit {commit}, seeds {seeds}: {told.seeds:,} run, {told.operations:,} operations of clients. "
        f"Failed: {failed}.",
        "",
        f"Come across: {counts}.",
    ]
    return "\n".join(lines) + "\n"


def with_profile(section: str, profile: str, text: str) -> str:
    """The section with the part of one profile written anew."""
    _, *parts = _TITLE.split(section)
    named = zip(parts[::2], parts[1::2], strict=True)
    found = {name: f"### Profile `{name}`{body}".strip() + "\n" for name, body in named}
    found[profile] = text
    head = f"{SIMULATOR}\nWritten by `make simulate`; [what is simulated and checked](simulation.md).\n\n"
    return head + "\n".join(found[name] for name in sorted(found))


def main() -> int:
    parser = argparse.ArgumentParser(description="Run seeds of the simulator and write down what was run.")
    parser.add_argument("--seeds", required=True, metavar="A-B")
    parser.add_argument("--profile", default="standard")
    parser.add_argument("-j", "--jobs", default="1")
    given = parser.parse_args()
    command = [sys.executable, "-m", "riverlog.testing.simulation", "run", "--seeds", given.seeds]
    commit = commit_name()
    done = subprocess.run(
        [*command, "--profile", given.profile, "-j", given.jobs],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    sys.stdout.write(done.stdout)
    told = read(done.stdout)
    if told is not None:
        page, section = PAGE.read_text(), simulator_section()
        rest = page[: len(page) - len(section)].rstrip("\n") + "\n\n"
        PAGE.write_text(
            rest + with_profile(section, given.profile, told_of(given.profile, given.seeds, told, commit))
        )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
