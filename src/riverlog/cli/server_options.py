"""The options that say how a server is set up, shared by `serve` and `config show`.

What they stand for is in `starting`.
"""

from typing import Annotated

import typer

ConfigFileOption = Annotated[
    str | None,
    typer.Option(
        "-c",
        "--config",
        metavar="FILE",
        envvar="RIVERLOG_CONFIG",
        help="A server.properties file, with Kafka's keys.",
    ),
]
DataDirOption = Annotated[
    str | None,
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
