"""The options that say how a server is set up, shared by `serve` and `config show`.

They become settings under Kafka's names; the loading, the precedence and the checks are `model.config`'s.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from riverlog.cli.failures import usage
from riverlog.cli.options import key_values

ConfigFileOption = Annotated[
    Path | None,
    typer.Option(
        "-c",
        "--config",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        envvar="RIVERLOG_CONFIG",
        help="A server.properties file, with Kafka's keys.",
    ),
]
DataDirOption = Annotated[
    Path | None,
    typer.Option("-d", "--data-dir", metavar="DIR", help="Where the data is (log.dirs). [./riverlog-data]"),
]
ListenOption = Annotated[
    str | None,
    typer.Option(
        "-l",
        "--listen",
        metavar="HOST:PORT",
        help="Where to serve; port 0 picks one. [127.0.0.1:9092]",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("-s", "--set", metavar="KEY=VALUE", help="A setting; goes before environment and file."),
]
InsecureOption = Annotated[
    bool,
    typer.Option("--insecure", help="Allow a listener without authentication that other machines can reach."),
]


def settings_from(
    data_dir: Path | None, listen: str | None, pairs: Sequence[str], *, insecure: bool
) -> dict[str, str]:
    """The settings that the options stand for; an option of its own goes before the same key in --set."""
    settings = key_values(pairs, "--set")
    if data_dir is not None:
        settings["log.dirs"] = str(data_dir)
    if listen is not None:
        settings["listeners"] = listen if "://" in listen else f"PLAINTEXT://{_address(listen)}"
    if insecure:
        settings["riverlog.insecure"] = "true"
    return settings


def _address(listen: str) -> str:
    _, colon, port = listen.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise usage(f"--listen {listen!r} is no address", remedy="--listen HOST:PORT, such as 127.0.0.1:9092")
    return listen
