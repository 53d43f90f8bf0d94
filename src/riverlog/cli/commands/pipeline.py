"""`riverlog pipeline`: make, check, run and look at projects of Spark Declarative Pipelines."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Final

import typer

from riverlog.cli.asking.connection import DEFAULT_BOOTSTRAP
from riverlog.cli.failures import CommandError, ExitCode, usage
from riverlog.cli.options import OutputFormat, OutputOption
from riverlog.cli.printing.output import counted, remark, show_json, show_rows, warn
from riverlog.cli.printing.pipeline_rows import finding_line, print_findings, status_row
from riverlog.cli.spark_extra import check_installed, spark_extra, told_in_our_words

if TYPE_CHECKING:
    from riverlog.spark.pipelines.checks.findings import Finding
    from riverlog.spark.pipelines.engine import Selection
    from riverlog.spark.pipelines.project import Project
    from riverlog.spark.pipelines.running import RunOptions

app = typer.Typer(
    help="Make, check and run pipelines on Spark (needs the extra `spark`).",
    no_args_is_help=True,
    add_completion=False,
)

_ProjectArgument = Annotated[
    Path,
    typer.Argument(metavar="PROJECT", help="Its directory or project file.", show_default="here, or above"),
]
_MasterOption = Annotated[
    str,
    typer.Option(
        "--master",
        envvar="RIVERLOG_SPARK_MASTER",
        metavar="URL",
        help="local[N], spark://…, sc://…, yarn, k8s://…",
    ),
]
_SparkLogOption = Annotated[
    str | None,
    typer.Option(
        "--spark-log",
        metavar="FILE",
        help="What Spark prints goes here; - is stderr.",
        show_default="spark.log beside the checkpoints",
    ),
]
_BootstrapOption = Annotated[
    str, typer.Option("-b", "--bootstrap-server", envvar="RIVERLOG_BOOTSTRAP", metavar="HOST:PORT[,…]")
]
_HERE = Path()
_LOCAL = "local[*]"
_ONCE_MORE_S: Final = 10.0
"""So long what was interrupted has to end before it is interrupted once more."""


@app.command("init")
def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of the project and its new directory.")],
    topic: Annotated[str, typer.Option("--topic", help="The topic that it reads.")] = "orders",
    bootstrap_server: _BootstrapOption = DEFAULT_BOOTSTRAP,
) -> None:
    """Make a small project that works: a topic decoded, clean records and dead letters out.

    Example: riverlog pipeline init shop
    """
    with spark_extra():
        from riverlog.spark.pipelines import scaffold

        directory = scaffold.create(Path.cwd(), name, topic=topic, bootstrap=bootstrap_server)
    remark(f"made {directory.relative_to(Path.cwd())}; next:")
    for command in (
        *(f"riverlog topic create {each}" for each in (topic, f"{topic}.clean", f"{topic}.dead")),
        f"riverlog pipeline validate {name}",
        f"riverlog pipeline run {name}",
    ):
        remark(f"  {command}")


@app.command("validate")
def validate(
    project: _ProjectArgument = _HERE,
    output: OutputOption = OutputFormat.TABLE,
    master: _MasterOption = _LOCAL,
    spark_log: _SparkLogOption = None,
) -> None:
    """Find what is wrong before anything runs: unknown topics, missing columns, bad options.

    Example: riverlog pipeline validate shop
    """
    with spark_extra():
        from riverlog.spark.pipelines.checks.findings import Finding, Place
        from riverlog.spark.pipelines.checks.validation import validate as findings_of
        from riverlog.spark.pipelines.project import SpecError, find, load

        spec_path = find(project)
        try:
            loaded = load(spec_path)
            findings = findings_of(loaded, master, _log_path(spark_log, loaded))
        except SpecError as error:
            findings = [Finding(Place(str(error.path), error.line), error.what, error.remedy)]
    print_findings(findings, spec_path.parent, output)
    if findings:
        raise typer.Exit(ExitCode.FAILURE)


@app.command("run")
def run(
    project: _ProjectArgument = _HERE,
    once: Annotated[
        bool, typer.Option("--once", help="Work until caught up, then end. Fit for cron.")
    ] = False,
    master: _MasterOption = _LOCAL,
    interval_ms: Annotated[
        int, typer.Option("--interval-ms", min=0, help="How often a flow looks for new records.")
    ] = 100,
    refresh_every: Annotated[
        float,
        typer.Option("--refresh-every", metavar="SECONDS", min=1, help="For what can only be triggered."),
    ] = 60.0,
    refresh: Annotated[
        list[str] | None, typer.Option("--refresh", metavar="DATASET", help="Only these; with --once.")
    ] = None,
    full_refresh: Annotated[
        list[str] | None,
        typer.Option(
            "--full-refresh", metavar="DATASET", help="Forget these and make them anew; with --once."
        ),
    ] = None,
    full_refresh_all: Annotated[
        bool, typer.Option("--full-refresh-all", help="Forget everything and begin anew; with --once.")
    ] = False,
    spark_log: _SparkLogOption = None,
) -> None:
    """Keep a project running, or with --once until it is caught up. SIGTERM ends it after the current batch.

    Example: riverlog pipeline run shop --master spark://host:7077
    """
    if not once and (refresh or full_refresh or full_refresh_all):
        raise usage("a refresh is a single run", remedy="add --once")
    if full_refresh_all and (refresh or full_refresh):
        raise usage(
            "--full-refresh-all names everything already", remedy="leave --refresh and --full-refresh out"
        )
    with spark_extra():
        from riverlog.spark.pipelines.engine import Selection
        from riverlog.spark.pipelines.project import find, load
        from riverlog.spark.pipelines.running import RunOptions

        loaded = load(find(project))
        options = RunOptions(master, _log_path(spark_log, loaded), interval_ms / 1000, refresh_every)
        if once:
            selection = Selection(refresh or (), full_refresh or (), full_refresh_all)
            _run_once(loaded, options, selection)
        else:
            _run_on(loaded, options)


@app.command("status")
def status(project: _ProjectArgument = _HERE, output: OutputOption = OutputFormat.TABLE) -> None:
    """Show how far each flow has come, from its checkpoint and the brokers.

    Works without Spark, where PyArrow and PyYAML are installed.

    Example: riverlog pipeline status shop
    """
    check_installed("pyarrow", "yaml")
    with told_in_our_words():
        from riverlog.spark.pipelines.project import find, load
        from riverlog.spark.pipelines.status import status_of

        loaded = load(find(project))
        found = status_of(loaded)
    rows = [status_row(each, output) for each in found.flows]
    if output is OutputFormat.JSON:
        runner = found.runner
        alive = None if runner is None else {"pid": runner.pid, "mode": runner.mode, "master": runner.master}
        show_json({"project": loaded.name, "runner": alive, "flows": rows})
        return
    show_rows(rows, output, empty="no flow has a checkpoint yet")
    if found.runner is None:
        remark("nobody runs this project")
    else:
        remark(f"run by process {found.runner.pid}: {found.runner.mode} on {found.runner.master}")


@app.command("replay")
def replay(
    archive: Annotated[
        str, typer.Argument(metavar="ARCHIVE", help="Directory or URI of the Parquet archive.")
    ],
    topic: Annotated[str, typer.Option("--topic", help="Where the records go.", show_default=False)],
    start: Annotated[
        str | None, typer.Option("--from", metavar="OFFSET|@TIME", help="The first record, inclusive.")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="OFFSET|@TIME", help="The end of the range, exclusive.")
    ] = None,
    source_topic: Annotated[
        str | None, typer.Option("--source-topic", help="Which one, of an archive of several topics.")
    ] = None,
    partition: Annotated[
        list[int] | None, typer.Option("--partition", help="Only these partitions of the archive.")
    ] = None,
    speed: Annotated[
        float | None,
        typer.Option(
            "--speed", metavar="FACTOR", help="A multiple of real time.", show_default="as fast as it can"
        ),
    ] = None,
    keep_partitions: Annotated[
        bool, typer.Option("--keep-partitions", help="Into the partitions they came from.")
    ] = False,
    replay_id: Annotated[
        str | None, typer.Option("--id", help="A name, so that running it again writes nothing twice.")
    ] = None,
    bootstrap_server: _BootstrapOption = DEFAULT_BOOTSTRAP,
    master: _MasterOption = _LOCAL,
    spark_log: _SparkLogOption = None,
) -> None:
    """Put archived records back into a topic: a range of times or offsets, at any speed.

    Example: riverlog pipeline replay /data/orders --topic orders.again --from @2026-01-01T00:00
    """
    first_offset, first_time = _place(start, "--from")
    end_offset, end_time = _place(end, "--to")
    if speed is not None and not speed > 0:
        raise usage(f"--speed {speed:g} is not above 0", remedy="leave it out for full speed")
    with spark_extra():
        from riverlog.cli.printing.output import progress
        from riverlog.spark import replay as put_back
        from riverlog.spark.pipelines.session import opened

        log = None if spark_log == "-" else Path(spark_log or "riverlog-replay.log")
        with opened("riverlog replay", {}, master, log=log) as spark, progress("replaying", None) as bar:
            done = put_back(
                spark,  # type: ignore[arg-type]
                archive,
                topic,
                {"kafka.bootstrap.servers": bootstrap_server},
                source_topic=source_topic,
                start=first_time,
                end=end_time,
                start_offset=first_offset,
                end_offset=end_offset,
                partitions=frozenset(partition) if partition else None,
                speed=speed,
                keep_partitions=keep_partitions,
                replay_id=replay_id,
                progress=lambda so_far: bar.advance(so_far.records),
            )
    remark(f"replayed {counted(done.records, 'record')} into {topic}")


@app.command("abort-leftovers")
def abort_leftovers(
    query: Annotated[
        str,
        typer.Argument(
            metavar="QUERY",
            help="Its id, as in `metadata` of its checkpoint, or a name from `riverlog txn list`.",
        ),
    ],
    output: OutputOption = OutputFormat.TABLE,
    bootstrap_server: _BootstrapOption = DEFAULT_BOOTSTRAP,
) -> None:
    """End what a query that will not run again has left open: commit what was decided, abort the rest.

    A query that does run is stopped by this, and nothing is lost or doubled.

    Example: riverlog pipeline abort-leftovers 0b6a4b2e-5f0c-4a57-9d3e-5a1f1f4c7a10
    """
    with spark_extra():
        from riverlog.spark.sink.leftovers import abort_leftovers as end_leftovers

        ended = end_leftovers(bootstrap_server, query)
    rows = [
        {"transactional id": name, "outcome": outcome}
        for outcome, names in (("committed", ended.committed), ("aborted", ended.aborted))
        for name in names
    ]
    show_rows(rows, output, empty=f"query {query} has nothing open")


def _run_once(project: "Project", options: "RunOptions", selection: "Selection") -> None:
    from riverlog.cli.printing.pipeline_watch import LogLines
    from riverlog.spark.pipelines.running import FindingsError, run_once
    from riverlog.spark.pipelines.status import status_of

    before = {each.checkpoint.location: each.records_read for each in status_of(project).flows}
    try:
        with _interrupting():
            run_once(project, options, selection, LogLines())
    except FindingsError as error:
        raise _mistakes(error.findings, project) from None
    except KeyboardInterrupt:
        raise CommandError(
            "stopped before everything was caught up",
            remedy="run it again: it goes on from there",
            code=ExitCode.INTERRUPTED,
        ) from None
    for each in status_of(project).flows:
        read = each.records_read - before.get(each.checkpoint.location, 0)
        remark(f"{each.checkpoint.flow} -> {each.checkpoint.target}: {counted(read, 'offset')} further")
    remark("caught up")


def _run_on(project: "Project", options: "RunOptions") -> None:
    from riverlog.cli.printing.pipeline_watch import watching
    from riverlog.spark.pipelines.running import FindingsError, run_on

    stop = threading.Event()
    with _on_signals(lambda number, frame: stop.set()), watching() as watcher:
        try:
            is_clean = run_on(project, options, stop, watcher)
        except FindingsError as error:
            raise _mistakes(error.findings, project) from None
        watcher.say("stopped after the current batch" if is_clean else "stopped")
    if not is_clean:
        warn("a batch took too long and was cut off; it is done again at the next start")


@contextmanager
def _interrupting() -> Iterator[None]:
    """SIGTERM and Ctrl-C raise KeyboardInterrupt in the block, and again as long as it does not end: what is
    raised can get lost in a callback of a library, and what the block still has to end can hang."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        signal.setitimer(signal.ITIMER_REAL, _ONCE_MORE_S, _ONCE_MORE_S)
        raise KeyboardInterrupt

    alarm = signal.signal(signal.SIGALRM, interrupt)
    try:
        with _on_signals(interrupt):
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, alarm)


@contextmanager
def _on_signals(handler: "signal._HANDLER") -> Iterator[None]:
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _log_path(given: str | None, project: "Project") -> Path | None:
    if given == "-":
        return None
    return Path(given) if given else project.state_directory / "spark.log"


def _mistakes(findings: "list[Finding]", project: "Project") -> CommandError:
    for each in findings[1:]:
        remark(finding_line(each, project.directory))
    first = findings[0]
    return CommandError(f"{first.place.within(project.directory)}: {first.message}", remedy=first.remedy)


def _place(text: str | None, option: str) -> tuple[int | None, datetime | None]:
    """An offset, or a time after `@`; a time without a zone is local."""
    if text is None:
        return None, None
    if text.isdecimal():
        return int(text), None
    try:
        if not text.startswith("@"):
            raise ValueError(text)
        if text[1:].isdecimal():
            return None, datetime.fromtimestamp(int(text[1:]) / 1000, tz=UTC)
        return None, datetime.fromisoformat(text[1:]).astimezone()
    except ValueError:
        raise usage(
            f"{option} {text!r} is neither an offset nor a time",
            remedy=f"{option} 1000, or {option} @2026-01-31T12:00",
        ) from None
