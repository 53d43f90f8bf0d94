"""Log lines of the process, on stderr: time, level, part, message. Set up once, by `serve`."""

import logging
import sys
import time


def log_to_stderr(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_LineFormatter())
    root = logging.getLogger("riverlog")
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    root.propagate = False


class _LineFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        part = record.name.removeprefix("riverlog.")
        # What a client sent may be in the message; a line break in it must not look like a line of ours.
        message = record.getMessage().replace("\r", "\\r").replace("\n", "\\n")
        line = f"{stamp}.{int(record.msecs):03d}Z {record.levelname:<7} {part}: {message}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line
