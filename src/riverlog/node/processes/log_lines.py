"""Log lines of the process, on stderr: time, level, part, message. Set up once, by `serve`."""

import logging
import sys
import time


def log_to_stderr(level: str, process: str = "") -> None:
    """`process` tells the lines of several apart that share a terminal."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_LineFormatter(f"{process} " if process else ""))
    root = logging.getLogger("riverlog")
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    root.propagate = False


class _LineFormatter(logging.Formatter):
    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        part = record.name.removeprefix("riverlog.")
        # What a client sent may be in the message; a line break in it must not look like a line of ours.
        message = record.getMessage().replace("\r", "\\r").replace("\n", "\\n")
        line = f"{stamp}.{int(record.msecs):03d}Z {record.levelname:<7} {self._process}{part}: {message}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line
