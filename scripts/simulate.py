"""Runs seeds of the simulator and writes down what was run, in a section of its own of docs/guarantees.md.

    python -m scripts.simulate --seeds 0-999 -j 2
    python -m scripts.simulate --profile cluster --seeds 0-999

Each run is a row in the part of its profile, with its commit; what was come across is added up over all of
them. So many seeds are done in as many runs as it takes. The exit code is 1 where a promise was broken, or
where all runs of the profile together never came across something that they must, and 2 where the seeds were
run at this commit before. `make soak` writes the rest of the page and leaves the section as it is.
"""

import argparse
import re
import subprocess
import sys
from collections import Counter
from typing import Final, NamedTuple

from riverlog.testing.simulation.cases import PROFILES
from riverlog.testing.simulation.swarm import Summary
from scripts.soak import PAGE, SIMULATOR, commit_name, simulator_section

_SUMMARY: Final = re.compile(r"^(\d+) seeds, (\d+) failed; (\d+) client operations", re.MULTILINE)
_COUNT: Final = re.compile(r"^ +(\d+)  (.+)$", re.MULTILINE)
_FAILED: Final = re.compile(r"^seed (\d+): BROKEN (\w+)", re.MULTILINE)
_TITLE: Final = re.compile(r"^### Profile `(\w+)`$", re.MULTILINE)
_ROW: Final = re.compile(r"^\| ([^|]+) \| (\d+)-(\d+) \| ([\d,]+) \| ([^|]+) \| ([\d,]+) \|$", re.MULTILINE)
_ACROSS: Final = "Come across in all of them: "


class Told(NamedTuple):
    """What `riverlog-sim` says at the end."""

    seeds: int
    failed: list[tuple[str, str]]
    operations: int
    counts: "Counter[str]"


class Row(NamedTuple):
    """One run."""

    commit: str
    seeds: range
    run: int
    failed: str
    operations: int

    def __str__(self) -> str:
        seeds = f"{self.seeds.start}-{self.seeds.stop - 1}"
        return f"| {self.commit} | {seeds} | {self.run:,} | {self.failed} | {self.operations:,} |"


class Part(NamedTuple):
    """All runs of one profile."""

    rows: list[Row]
    counts: "Counter[str]"

    def with_run(self, seeds: range, told: Told, commit: str) -> "Part":
        failed = ", ".join(f"{seed} ({invariant})" for seed, invariant in told.failed) or "none"
        row = Row(commit, seeds, told.seeds, failed, told.operations)
        return Part([*self.rows, row], self.counts + told.counts)

    def has_run(self, seeds: range, commit: str) -> bool:
        """Whether one of these seeds was run at this commit."""
        return any(
            row.commit == commit and row.seeds.start < seeds.stop and seeds.start < row.seeds.stop
            for row in self.rows
        )

    def text(self, profile: str) -> str:
        counts = "; ".join(f"{what} {count:,}" for what, count in sorted(self.counts.items()))
        lines = [
            f"### Profile `{profile}`",
            f"{sum(row.run for row in self.rows):,} seeds.",
            "",
            "| commit | seeds | run | failed | operations of clients |",
            "|---|---|---|---|---|",
            *map(str, self.rows),
            "",
            f"{_ACROSS}{counts}.",
        ]
        return "\n".join(lines) + "\n"


def read(output: str) -> Told | None:
    """None when it did not come to its end."""
    summary = _SUMMARY.search(output)
    if summary is None:
        return None
    counts = Counter({what: int(count) for count, what in _COUNT.findall(output)})
    return Told(int(summary[1]), _FAILED.findall(output), int(summary[3]), counts)


def parts_of(section: str) -> dict[str, Part]:
    """What the section says, by profile."""
    _, *parts = _TITLE.split(section)
    return {name: _part(body) for name, body in zip(parts[::2], parts[1::2], strict=True)}


def _part(body: str) -> Part:
    rows = [
        Row(commit, range(int(first), int(last) + 1), _number(count), failed, _number(operations))
        for commit, first, last, count, failed, operations in _ROW.findall(body)
    ]
    counts: Counter[str] = Counter()
    for each in body.partition(_ACROSS)[2].strip().removesuffix(".").split("; "):
        what, _, count = each.rpartition(" ")
        if what:
            counts[what] = _number(count)
    return Part(rows, counts)


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def section_of(parts: dict[str, Part]) -> str:
    head = f"{SIMULATOR}\nWritten by `make simulate`; [what is simulated and checked](simulation.md).\n\n"
    return head + "\n".join(parts[name].text(name) for name in PROFILES if name in parts)


def main() -> int:
    parser = argparse.ArgumentParser(description="Run seeds of the simulator and write down what was run.")
    parser.add_argument("--seeds", required=True, metavar="A-B")
    parser.add_argument("--profile", default="standard", choices=PROFILES)
    parser.add_argument("-j", "--jobs", default="1")
    given = parser.parse_args()
    first, _, last = given.seeds.partition("-")
    seeds, commit = range(int(first), int(last or first) + 1), commit_name()
    if _present(given.profile).has_run(seeds, commit):
        sys.stderr.write(f"Some of the seeds {given.seeds} were run at {commit} before; name others.\n")
        return 2
    command = [sys.executable, "-m", "riverlog.testing.simulation", "run", "--quick", "--seeds", given.seeds]
    done = subprocess.run(
        [*command, "--profile", given.profile, "-j", given.jobs],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    sys.stdout.write(done.stdout)
    told = read(done.stdout)
    if told is None:
        return done.returncode or 1
    part = _present(given.profile).with_run(seeds, told, commit)
    _write(given.profile, part)
    missing = Summary(counts=part.counts).never_happened(given.profile)
    if missing:
        sys.stdout.write(f"no run of the profile has come across: {', '.join(missing)}\n")
    return 1 if told.failed or missing else 0


def _present(profile: str) -> Part:
    return parts_of(simulator_section()).get(profile, Part([], Counter()))


def _write(profile: str, part: Part) -> None:
    """The page is read anew: another run may have ended meanwhile."""
    page, section = PAGE.read_text(), simulator_section()
    rest = page[: len(page) - len(section)].rstrip("\n") + "\n\n"
    PAGE.write_text(rest + section_of({**parts_of(section), profile: part}))


if __name__ == "__main__":
    sys.exit(main())
