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
) -> None:
    """Run a broker in the foreground; SIGINT or SIGTERM stops it cleanly.

    When it can take requests it prints `riverlog ready on HOST:PORT`.
    A setting comes from --set, RIVERLOG_… variables, the file, the default,
    in this order; `riverlog config show` prints the outcome.

    Examples:
      riverlog serve
      riverlog serve --data-dir /var/lib/riverlog --listen 127.0.0.1:0
      riverlog serve -c server.properties --set log.segment.bytes=104857600
    """
    raise typer.Exit(start(ServeOptions(config, data_dir, listen, set_ or (), insecure, log_level)))
