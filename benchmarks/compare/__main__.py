"""`python -m benchmarks.compare`: measure Riverlog and Apache Kafka in one run; `… report RESULT.json`: write
it up.

Exit codes: 0 measured, 1 the run could not begin or a result could not be read, 2 usage, 3 Apache Kafka could
not be had (Riverlog was measured alone).
"""

import argparse
import shlex
import shutil
import signal
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from benchmarks.compare import brokers, driver, growth, lifecycle, plan, plots, report, results, run, table
from benchmarks.compare.case import Case, Tools
from benchmarks.compare.replicated import watching

OUTPUT = Path(__file__).parents[1] / "results"
KAFKA_MISSING = 3
CLUSTERS = 3
_PLACES = ("--output", "--data")


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["report"]:
        return write_report(arguments[1:])
    options = _parser().parse_args(arguments)
    console = Console(stderr=True, width=None if sys.stderr.isatty() else 150)
    if options.list:
        for case in (*plan.chosen(options.case), *plan.chosen(options.case, plan.replicated_cases())):
            print(f"{case.name:<38} {case.words}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # So that brokers are stopped.
    try:
        return compare(options, arguments, console)
    except (driver.DriverMissingError, lifecycle.NotReadyError, watching.NeverSoError) as error:
        console.print(f"[red]cannot measure:[/] {error}")
        return 1


def write_report(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare report")
    parser.add_argument("result", type=Path)
    options = parser.parse_args(arguments)
    try:
        print(f"wrote {report.write(results.read(options.result))}")
    except (results.UnknownResultError, report.NoPlaceError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.add_argument("--target", action="append", default=[], metavar="NAME=HOST:PORT", type=_target)
    parser.add_argument("--only-given", action="store_true", help="measure the --target brokers alone")
    parser.add_argument(
        "--case", action="append", default=[], metavar="NAME", help="also a prefix or a pattern"
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--quick", action="store_true", help="a fifth of the data, once: is everything in order?"
    )
    parser.add_argument("--growth-gb", type=int, default=20, help="how long the log grows; 0 leaves it out")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="DIR")
    parser.add_argument("--data", type=Path, metavar="DIR", help="where the brokers keep their data")
    parser.add_argument("--list", action="store_true", help="name the cases and end")
    return parser


def _without_places(arguments: list[str]) -> list[str]:
    """Where results and data are kept is nobody's business but this machine's."""
    told: list[str] = []
    rest = iter(arguments)
    for each in rest:
        if each in _PLACES:
            next(rest, None)
        elif each.partition("=")[0] not in _PLACES:
            told.append(each)
    return told


def _target(text: str) -> tuple[str, str, int]:
    name, _, address = text.partition("=")
    host, _, port = address.rpartition(":")
    if not name or not host or not port.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=HOST:PORT")
    return name, host, int(port)


class Shown:
    """The progress of a run: bars on a terminal, a line for each case elsewhere."""

    def __init__(self, console: Console, bars: Bars, total: int) -> None:
        self._console, self._bars = console, bars
        self._task = bars.add_task("starting", total=total)
        self._last = ""

    def step(self, words: str) -> None:
        self._bars.update(self._task, description=words)
        kind = words.partition(": ")[0]
        if not self._console.is_terminal and kind != self._last:
            self._console.print(f"{datetime.now(UTC):%H:%M:%S} {kind}")
        self._last = kind

    def took(self, seconds: float) -> None:
        self._bars.advance(self._task)

    def note(self, words: str) -> None:
        self._console.print(f"[yellow]{words}[/]")


def compare(options: argparse.Namespace, arguments: list[str], console: Console) -> int:
    scale, repeats = (0.2, 1) if options.quick else (1.0, options.repeats)
    cases, load_driver = plan.chosen(options.case), driver.build()
    of_clusters = [] if options.only_given else plan.chosen(options.case, plan.replicated_cases())
    flavours, exit_code = _flavours(options, console)
    given = [brokers.given(*each) for each in options.target]
    growing = _growing(options, flavours)
    names = len(flavours) + len(given)
    expected_s = plan.expected_s(cases, names, repeats, scale, options.growth_gb, len(growing))
    expected_s += plan.expected_s(of_clusters, CLUSTERS, repeats, scale, 0, 0)
    console.print(
        f"{len(cases)} cases on {names} targets and {len(of_clusters)} on {CLUSTERS} clusters, "
        f"{repeats}x each: about {expected_s / 60:.0f} minutes"
    )
    directory = Path(tempfile.mkdtemp(prefix="riverlog-compare-", dir=options.data))
    tools = Tools(load_driver, directory, scale)
    result = _new_result(options, arguments, flavours, given, repeats, scale, directory)
    started_s = time.perf_counter()
    try:
        with _bars(console) as bars:
            samples = (len(cases) * names + len(of_clusters) * CLUSTERS) * repeats
            shown = Shown(console, bars, samples + len(growing))
            run.measure_limits(tools, result, shown)
            if cases:
                with run.running(flavours, given, tools) as targets:
                    run.warm_up(targets, tools, shown)
                    for case in cases:
                        run.measure_case(case, targets, tools, result, shown)
                        result.seconds = time.perf_counter() - started_s
                        results.save(result, options.output / "compare.json")
            if of_clusters:
                _measure_clusters(of_clusters, flavours, tools, result, shown, options.output)
            lengths = growth.lengths(growth.longest_gb(directory, options.growth_gb))
            run.measure_growth(growing, lengths, tools, result, shown)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    result.seconds = time.perf_counter() - started_s
    _finish(result, options.output, console)
    return exit_code


def _measure_clusters(
    cases: list[Case],
    flavours: list[brokers.Flavour],
    tools: Tools,
    result: results.Result,
    shown: Shown,
    output: Path,
) -> None:
    kafka = next((each for each in flavours if isinstance(each, brokers.Kafka)), None)
    with run.running_clusters(kafka, tools) as clusters:
        for cluster in clusters:
            told = result.targets.get(cluster.name)
            result.targets[cluster.name] = (
                f"{told}; three replicas: {cluster.about}" if told else cluster.about
            )
        run.warm_up(clusters, tools, shown, plan.CLUSTER_WARM_UP)
        for case in cases:
            run.measure_case(case, clusters, tools, result, shown)
            results.save(result, output / "compare.json")


def _flavours(options: argparse.Namespace, console: Console) -> tuple[list[brokers.Flavour], int]:
    if options.only_given:
        return [], 0
    flavours: list[brokers.Flavour] = [brokers.Riverlog()]
    try:
        flavours += brokers.kafkas()
    except brokers.KafkaUnavailableError as error:
        console.print(f"[red]Apache Kafka is left out:[/] {error}. Riverlog is measured alone.")
        return flavours, KAFKA_MISSING
    return flavours, 0


def _growing(options: argparse.Namespace, flavours: list[brokers.Flavour]) -> list[brokers.Flavour]:
    """The tuned heap makes no difference to the length of a log and would take as long as the others."""
    is_wanted = options.growth_gb > 0 and ("log" in options.case or not (options.quick or options.case))
    return [each for each in flavours if each.name != "kafka-tuned"] if is_wanted else []


def _new_result(
    options: argparse.Namespace,
    arguments: list[str],
    flavours: list[brokers.Flavour],
    given: list[brokers.Target],
    repeats: int,
    scale: float,
    directory: Path,
) -> results.Result:
    kafka = brokers.kafka_version({each.name: each for each in flavours})
    about = {each.name: each.about for each in flavours} | {each.name: each.about for each in given}
    return results.Result(
        started=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        command=shlex.join(["python", "-m", "benchmarks.compare", *_without_places(arguments)]),
        commit=results.commit(),
        repeats=repeats,
        scale=scale,
        machine=results.machine(directory),
        versions=results.versions(kafka),
        settings=brokers.SETTINGS,
        targets=about,
    )


def _bars(console: Console) -> Bars:
    columns = (BarColumn(30), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    return Bars(*columns, TextColumn("{task.description}"), console=console, disable=not console.is_terminal)


def _finish(result: results.Result, output: Path, console: Console) -> None:
    table.show(result, Console(width=180))
    path = output / "compare.json"
    results.save(result, path)
    console.print(f"every sample is in {path}; took {result.seconds / 60:.1f} minutes")
    for plot in plots.draw(result, output):
        console.print(f"plot: {plot}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
