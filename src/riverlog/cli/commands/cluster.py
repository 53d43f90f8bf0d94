"""`riverlog cluster`: a cluster on this machine for development, and how any cluster is."""

import os
from typing import Annotated

import typer

from riverlog.cli.asking.connection import Connection, connected
from riverlog.cli.asking.overview import add_racks, overview
from riverlog.cli.asking.replica_states import replica_states
from riverlog.cli.asking.silent_brokers import silent_brokers
from riverlog.cli.commands.cluster_elect import elect
from riverlog.cli.commands.cluster_views import broker_row, in_order, show_brokers, show_list, show_status
from riverlog.cli.failures import CommandError, ExitCode
from riverlog.cli.options import OutputFormat, OutputOption
from riverlog.cli.printing.again import IntervalOption, WatchOption, show_again
from riverlog.cli.server_options import ListenOption, SetOption
from riverlog.cli.starting import LogLevel, ServeOptions, start

app = typer.Typer(
    help="Start a cluster for development; see its brokers, controller and partitions; elect leaders.",
    no_args_is_help=True,
    add_completion=False,
)


@app.command("up")
def up(
    brokers: Annotated[
        int | None, typer.Option("--brokers", min=1, metavar="N", help="How many. [one for each core]")
    ] = None,
    zookeeper: Annotated[
        str | None,
        typer.Option("--zookeeper", metavar="HOST:PORT", help="Keep the metadata in this ZooKeeper."),
    ] = None,
    directory: Annotated[
        str, typer.Option("--dir", metavar="DIR", help="Where the data is, a directory for each broker.")
    ] = "riverlog-cluster",
    listen: ListenOption = None,
    set_: SetOption = None,
    log_level: Annotated[
        LogLevel, typer.Option("--log-level", help="How much to log on stderr.")
    ] = LogLevel.INFO,
) -> None:
    """Run a cluster on this machine in the foreground; SIGINT or SIGTERM stops all of it cleanly.

    It is `riverlog serve --brokers N` with a directory of its own. Without
    --zookeeper the brokers share their metadata in a file.

    Examples:
      riverlog cluster up --brokers 3
      riverlog cluster up --brokers 3 --zookeeper 127.0.0.1:2181
    """
    pairs = [*(set_ or ()), *([f"zookeeper.connect={zookeeper}"] if zookeeper is not None else [])]
    options = ServeOptions(
        data_dir=directory,
        listen=listen,
        pairs=pairs,
        log_level=log_level,
        brokers=brokers or os.cpu_count() or 1,
        is_cluster_up=True,
    )
    raise typer.Exit(start(options))


@app.command("status")
@connected
def status(
    connection: Connection,
    watch: WatchOption = False,
    interval: IntervalOption = 2.0,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Show whether all is well: brokers, controller, partitions without a leader or with too few replicas.

    Brokers that are registered and do not answer are told apart from those that are away.
    Partitions that lack something are listed with their ISR, their eligible leader replicas (ELR) and the
    records that each replica lacks, in the order of REPLICAS (- where a broker does not answer). Max lag is
    that of all followers that answer.

    Exit code 1 when a partition has no leader or there is no controller.

    Example: riverlog cluster status --watch
    """

    def show() -> bool:
        found = overview(connection)
        found.silent = silent_brokers(connection)
        show_status(found, replica_states(connection, found), output, compact=watch)
        return found.controller is not None and not found.without_leader

    show_again(show, watch, interval, output)


@app.command("brokers")
@connected
def brokers(
    connection: Connection,
    watch: WatchOption = False,
    interval: IntervalOption = 2.0,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """List brokers with their address, rack and partitions; also those that are away and hold partitions.

    Example: riverlog cluster brokers -o json
    """

    def show() -> bool:
        found = overview(connection)
        add_racks(connection, found)
        show_list([broker_row(each) for each in in_order(found)], output, compact=watch)
        return True

    show_again(show, watch, interval, output)


@app.command("describe")
@connected
def describe(
    connection: Connection,
    wanted: Annotated[
        list[int] | None, typer.Argument(metavar="BROKER…", show_default=False, help="Only these.")
    ] = None,
    watch: WatchOption = False,
    interval: IntervalOption = 2.0,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Show what is on each broker, partition by partition.

    Example: riverlog cluster describe 2
    """

    def show() -> bool:
        found = overview(connection)
        add_racks(connection, found)
        for node_id in wanted or ():
            if node_id not in found.brokers:
                raise CommandError(
                    f"there is no broker {node_id}",
                    remedy="see which there are with `riverlog cluster brokers`",
                    code=ExitCode.NOT_FOUND,
                )
        chosen = [each for each in in_order(found) if not wanted or each.node_id in wanted]
        show_brokers(found, chosen, output, compact=watch)
        return True

    show_again(show, watch, interval, output)


app.command("elect")(elect)
