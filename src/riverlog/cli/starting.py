"""From the options of `serve` to a running node. Imports nothing heavy before the node itself.

The options become settings under Kafka's names; the loading, the precedence and the checks are
`model.config`'s.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from riverlog.cli.failures import key_values, usage


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class ServeOptions:
    config: str | None = None
    data_dir: str | None = None
    listen: str | None = None
    pairs: Sequence[str] = ()
    insecure: bool = False
    log_level: LogLevel = LogLevel.INFO

    def settings(self) -> dict[str, str]:
        """What the options stand for; an option of its own goes before the same key in --set."""
        settings = key_values(self.pairs, "--set")
        if self.data_dir is not None:
            settings["log.dirs"] = self.data_dir
        if self.listen is not None:
            settings["listeners"] = (
                self.listen if "://" in self.listen else f"PLAINTEXT://{_address(self.listen)}"
            )
        if self.insecure:
            settings["riverlog.insecure"] = "true"
        return settings

    def config_text(self) -> str | None:
        if self.config is None:
            return None
        try:
            with open(self.config, encoding="utf-8") as file:
                return file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise usage(f"--config {self.config} cannot be read: {error}") from None


def start(options: ServeOptions) -> int:
    """Serve until told to stop; the exit code."""
    settings, text = options.settings(), options.config_text()
    from riverlog.node.serve import run

    return run(
        config_text=text,
        config_path=options.config,
        flags=settings,
        environ={**os.environ, "RIVERLOG_LOG_LEVEL": options.log_level.value},
    )


def _address(listen: str) -> str:
    _, colon, port = listen.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise usage(f"--listen {listen!r} is no address", remedy="--listen HOST:PORT, such as 127.0.0.1:9092")
    return listen
