"""`riverlog serve`: run a broker until it is told to stop."""

import os
from enum import StrEnum
from typing import Annotated

import typer

from riverlog.cli.server_options import (
    ConfigFileOption,
    DataDirOption,
    InsecureOption,
    ListenOption,
    SetOption,
    settings_from,
)

app = typer.Typer(add_completion=False)


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


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
    flags = settings_from(data_dir, listen, set_ or [], insecure=insecure)
    from riverlog.node.serve import run

    code = run(
        config_text=None if config is None else config.read_text(),
        config_path=None if config is None else str(config),
        flags=flags,
        environ={**os.environ, "RIVERLOG_LOG_LEVEL": log_level.value},
    )
    raise typer.Exit(code)
