"""`riverlog-sim`: run a seed, many seeds or a case, and make a failing seed small.

Starts itself anew with PYTHONHASHSEED=0, so that a seed is the same run everywhere. Exit codes: 0 all is
well, 1 a promise was broken or something never happened, 2 a case that cannot be run.
"""

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path

from riverlog.testing.simulation.case_files import from_json
from riverlog.testing.simulation.cases import PROFILES, Case, draw
from riverlog.testing.simulation.runs import Outcome, run_case
from riverlog.testing.simulation.schedules import ScheduleError
from riverlog.testing.simulation.shrinking import shrink
from riverlog.testing.simulation.swarm import Summary, run_seed, run_seeds

_HASH_SEED = "PYTHONHASHSEED"


def main() -> None:
    if os.environ.get(_HASH_SEED) != "0":
        module = ["-m", "riverlog.testing.simulation", *sys.argv[1:]]
        os.execve(sys.executable, [sys.executable, *module], {**os.environ, _HASH_SEED: "0"})
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    given = _parser().parse_args(arguments)
    try:
        if given.command == "shrink":
            return _shrink(given)
        if given.seeds is not None:
            return _run_many(given)
        return _run_one(given)
    except ScheduleError as error:
        sys.stderr.write(f"{error}\n")
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("riverlog-sim", description="Whole brokers in a simulator.")
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="run a seed, a range of seeds, or a case from a file")
    what = running.add_mutually_exclusive_group(required=True)
    what.add_argument("--seed", type=int, help="one seed")
    what.add_argument("--seeds", type=_range, metavar="A-B", help="all seeds from A to B")
    what.add_argument(
        "--case", type=Path, metavar="FILE", help="a case that `shrink` has written, or a trace"
    )
    running.add_argument("--trace", type=Path, metavar="FILE", help="write what happens, line by line")
    running.add_argument("-j", "--jobs", type=int, default=1, help="processes, for --seeds")
    running.add_argument("--quick", action="store_true", help="do not fail for what never happened")
    running.add_argument("--first", action="store_true", help="stop at the first seed that fails")
    running.add_argument(
        "--chances",
        type=int,
        default=1,
        metavar="N",
        help="run a case with N seeds, up to the first that fails",
    )
    shrinking = commands.add_parser("shrink", help="make the case of a failing seed small, as JSON")
    shrinking.add_argument("--seed", type=int, required=True)
    shrinking.add_argument("--tries", type=int, default=300, help="runs at most (300)")
    for each in (running, shrinking):
        each.add_argument("--profile", choices=PROFILES, default="standard")
    return parser


def _range(text: str) -> range:
    first, _, last = text.partition("-")
    try:
        seeds = range(int(first), int(last or first) + 1)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a range such as 0-99") from None
    if not seeds:
        raise argparse.ArgumentTypeError(f"{text!r} holds no seed")
    return seeds


def _run_one(given: argparse.Namespace) -> int:
    if given.case is not None:
        outcome = _with_chances(from_json(_read(given.case)), given.trace, given.chances)
    elif given.trace is not None:
        outcome = _traced(draw(given.seed, given.profile), given.trace)
    else:
        outcome = run_seed(given.seed, given.profile)
    sys.stdout.write(_line(outcome) + "\n")
    if outcome.violation is not None:
        sys.stdout.write(f"repeat it with: {_repeat(given, outcome)}\n")
    return 0 if outcome.violation is None else 1


def _run_many(given: argparse.Namespace) -> int:
    def tell(outcome: Outcome) -> None:
        if outcome.violation is not None:
            sys.stdout.write(f"{_line(outcome)}\nrepeat it with: {_repeat(given, outcome)}\n")
            sys.stdout.flush()

    summary = run_seeds(given.seeds, given.profile, given.jobs, tell, stops_early=given.first)
    sys.stdout.write(report(summary))
    missing = [] if given.quick else summary.never_happened(given.profile)
    if missing:
        sys.stdout.write(f"never happened, so this proves nothing about it: {', '.join(missing)}\n")
    return 1 if summary.failed or missing else 0


def _shrink(given: argparse.Namespace) -> int:
    case = draw(given.seed, given.profile)
    small = shrink(case, _invariant_of, given.tries)
    if small is case:
        sys.stderr.write(f"seed {given.seed} breaks no promise; there is nothing to shrink\n")
        return 1
    sys.stdout.write(small.to_json())
    return 0


def report(summary: Summary) -> str:
    lines = [
        f"{summary.seeds} seeds, {len(summary.failed)} failed; {summary.operations} client operations, "
        f"{summary.cpu_s / max(summary.seeds, 1):.2f} CPU-seconds a seed"
    ]
    lines += [f"  {count:>10}  {what}" for what, count in sorted(summary.counts.items())]
    return "\n".join(lines) + "\n"


def _invariant_of(case: Case) -> str | None:
    violation = run_case(case).violation
    return None if violation is None else violation.invariant


def _with_chances(case: Case, trace: Path | None, chances: int) -> Outcome:
    """What the case says holds in each; latencies, and what clients write, are the seed's."""
    outcome = _traced(case, trace)
    for seed in range(case.seed + 1, case.seed + chances):
        if outcome.violation is not None:
            break
        outcome = _traced(replace(case, seed=seed), trace)
    return outcome


def _traced(case: Case, path: Path | None) -> Outcome:
    if path is None:
        return run_case(case)
    with path.open("w") as file:
        return run_case(case, file)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise ScheduleError(f"the case {path} cannot be read: {error.strerror}") from error


def _line(outcome: Outcome) -> str:
    result = "ok" if outcome.violation is None else f"BROKEN {outcome.violation}"
    facts = f"{outcome.operations} operations, {outcome.cpu_s:.2f} CPU-seconds, trace {outcome.trace_hash}"
    return f"seed {outcome.seed}: {result} ({facts})"


def _repeat(given: argparse.Namespace, outcome: Outcome) -> str:
    if getattr(given, "case", None) is not None:
        chances = "" if given.chances == 1 else f" --chances {given.chances}"
        return f"riverlog-sim run --case {given.case}{chances}"
    profile = "" if given.profile == "standard" else f" --profile {given.profile}"
    return f"riverlog-sim run --seed {outcome.seed}{profile}"
