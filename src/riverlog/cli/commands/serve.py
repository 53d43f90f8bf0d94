"""`riverlog serve`: run a broker until it is told to stop."""

from typing import Annotated

import typer

from riverlog.cli.server_options import (
    ConfigFileOption,
    DataDirOption,
    InsecureOption,
    ListenOption,
    SetOption,
)
from riverlog.cli.starting import LogLevel, ServeOptions, start

app = typer.Typer(add_completion=False)


@app.command()
def serve(
    config: ConfigFileOption = None,
    data_dir: DataDirOption = None,
    listen: ListenOption = None,
    set_: SetOption = None,
    insecure: InsecureOption = False,
    log_level: Annotated[
        LogLevel, typer.Option("--log-level", envvar="RIVERLOG_LOG_LEVEL", help="How much to log on stderr.")
    ] = LogLevel.INFO,
    brokers: Annotated[
        int | None,
        typer.Option(
            "--brokers",
            min=1,
            metavar="N",
            help="Run N brokers as processes of their own, a cluster that uses N cores.",
        ),
    ] = None,
    supervised: Annotated[bool, typer.Option("--supervised", hidden=True)] = False,
) -> None:
    """Run a broker in the foreground; SIGINT or SIGTERM stops it cleanly.

    When it can take requests it prints `riverlog ready on HOST:PORT`.
    With --brokers N ids and ports count up from those of one broker, the
    data is in DIR/broker-ID, and a broker that dies is started again.
    A setting comes from --set, RIVERLOG_… variables, the file, the default,
    in this order; `riverlog config show` prints the outcome.

    Examples:
      riverlog serve
      riverlog serve --data-dir /var/lib/riverlog --listen 127.0.0.1:0
      riverlog serve -c server.properties --set log.segment.bytes=104857600
      riverlog serve --brokers 4
    """
    raise typer.Exit(
        start(
            ServeOptions(
                config, data_dir, listen, set_ or (), insecure, log_level, brokers, supervised=supervised
            )
        )
    )
