"""`riverlog serve` without the option parser: the same options, understood only where they are plain.

Not a second command line: a test holds it equal to the options of `serve`, and everything unusual is left to
the full parser, which also words the complaints.
"""

import os
from collections.abc import Sequence

from riverlog.cli.failures import report
from riverlog.cli.starting import LogLevel, ServeOptions, start

_VALUES = {
    "--brokers": "brokers",
    "--config": "config",
    "-c": "config",
    "--data-dir": "data_dir",
    "-d": "data_dir",
    "--listen": "listen",
    "-l": "listen",
    "--log-level": "log_level",
    "--set": "set",
    "-s": "set",
}
_FLAGS = frozenset({"--insecure", "--supervised"})


def parse(arguments: Sequence[str]) -> ServeOptions | None:
    """The options, or None where the full parser is to speak."""
    values = {"config": os.environ.get("RIVERLOG_CONFIG"), "log_level": os.environ.get("RIVERLOG_LOG_LEVEL")}
    pairs: list[str] = []
    flags: set[str] = set()
    waiting = list(arguments)
    while waiting:
        option = waiting.pop(0)
        if option in _FLAGS:
            flags.add(option)
            continue
        if option.startswith("--"):
            option, equals, attached = option.partition("=")
            if equals:
                waiting.insert(0, attached)
        if option not in _VALUES or not waiting:
            return None
        name, value = _VALUES[option], waiting.pop(0)
        if name == "set":
            pairs.append(value)
        else:
            values[name] = value
    return _checked(values, tuple(pairs), flags)


def run(options: ServeOptions) -> int:
    """Serve until told to stop; the exit code."""
    try:
        return start(options)
    except (Exception, KeyboardInterrupt) as error:  # The edge of the program: reported, and not lost.
        code = report(error)
        if code is None:
            raise
        return code


def _checked(values: dict[str, str | None], pairs: tuple[str, ...], flags: set[str]) -> ServeOptions | None:
    log_level, brokers = values["log_level"] or LogLevel.INFO, values.get("brokers")
    if log_level not in list(LogLevel) or not (brokers is None or (brokers.isdecimal() and int(brokers) > 0)):
        return None
    return ServeOptions(
        config=values["config"] or None,
        data_dir=values.get("data_dir"),
        listen=values.get("listen"),
        pairs=pairs,
        insecure="--insecure" in flags,
        log_level=LogLevel(log_level),
        brokers=None if brokers is None else int(brokers),
        supervised="--supervised" in flags,
    )
