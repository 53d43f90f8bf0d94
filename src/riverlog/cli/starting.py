"""From the options of `serve` to a running node. Imports nothing heavy before the node itself.

The options become settings under Kafka's names; the loading, the precedence and the checks are
`model.config`'s.
"""

import os
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from riverlog.cli.failures import ExitCode, key_values, usage
from riverlog.model.config.parse import ConfigSource, combine, from_environment, from_file
from riverlog.model.config.settings import Settings


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class ServeOptions(NamedTuple):
    config: str | None = None
    data_dir: str | None = None
    listen: str | None = None
    pairs: Sequence[str] = ()
    insecure: bool = False
    log_level: LogLevel = LogLevel.INFO
    brokers: int | None = None
    supervised: bool = False
    is_cluster_up: bool = False
    """Whether it is `cluster up` that was typed, which has options of its own."""

    def values(self) -> list[tuple[str, str, str]]:
        """Key, value and option; an option of its own goes before the same key in --set."""
        values = [(key, value, f"--set {key}") for key, value in key_values(self.pairs, "--set").items()]
        if self.data_dir is not None:
            values.append(("log.dirs", self.data_dir, "--data-dir"))
        if self.listen is not None:
            values.append(("listeners", _listeners(self.listen), "--listen"))
        if self.insecure:
            values.append(("riverlog.insecure", "true", "--insecure"))
        return values


def load_settings(options: ServeOptions) -> Settings:
    """What the options, the environment and the file say, in this order of weight."""
    sources = []
    if options.config is not None:
        sources.append(from_file(_text(options.config), options.config))
    sources.append(from_environment(os.environ))
    return combine([*sources, ConfigSource("options", options.values())])


def start(options: ServeOptions) -> int:
    """Serve until told to stop; the exit code."""
    settings = load_settings(options)
    if options.brokers is not None:
        from riverlog.cli.starting_several import start_several

        return start_several(options, settings, options.brokers)
    from riverlog.node.serve import run

    run(settings, log_level=options.log_level.name, is_supervised=options.supervised)
    return ExitCode.OK


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise usage(f"--config {path} cannot be read: {error}") from None


def _listeners(listen: str) -> str:
    if "://" in listen:
        return listen
    _, colon, port = listen.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise usage(f"--listen {listen!r} is no address", remedy="--listen HOST:PORT, such as 127.0.0.1:9092")
    return f"PLAINTEXT://{listen}"
