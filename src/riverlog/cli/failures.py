"""Exit codes, and the one place where a failure becomes an error line and a code.

Commands raise `CommandError`, or let KafkaException and RiverlogError pass; `report` at the top of the
command tree turns each into a message that says what happened and what to do next. What the option
parser complains about itself is reported in the same way.
"""

import errno
import os
import sys
from collections.abc import Iterable
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from riverlog.cli.interrupts import heed_no_more
from riverlog.model.errors import ConfigError, ErrorCode, RiverlogError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError


class ExitCode(IntEnum):
    OK = 0
    FAILURE = 1
    USAGE = 2
    AUTHENTICATION = 3
    NOT_FOUND = 4
    CONNECTION = 5
    INTERRUPTED = 130


class CommandError(Exception):
    """Why a command cannot go on, in words for the person who typed it."""

    def __init__(self, message: str, *, remedy: str = "", code: ExitCode = ExitCode.FAILURE) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.code = code


def usage(message: str, *, remedy: str = "") -> CommandError:
    return CommandError(message, remedy=remedy, code=ExitCode.USAGE)


def from_kafka(error: "KafkaError", doing: str = "") -> CommandError:
    """The failure that a client or broker error stands for; `doing` names the interrupted work."""
    reason = _reason(error)
    code, remedy = _MEANINGS.get(error.name(), (ExitCode.FAILURE, ""))
    return CommandError(f"{doing}: {reason}" if doing else reason, remedy=remedy, code=code)


def report(error: BaseException) -> int | None:
    """Print what a command failed with; its exit code, or None for what belongs to the option parser."""
    if isinstance(error, KeyboardInterrupt):
        heed_no_more()
        return ExitCode.INTERRUPTED
    if isinstance(error, BrokenPipeError):
        _silence_stdout()
        return ExitCode.OK
    if _belongs_to_parser(error) or os.environ.get("RIVERLOG_DEBUG"):
        return None
    failure = _translated(error)
    print_error(failure)
    return failure.code


def _translated(error: BaseException) -> CommandError:
    match error:
        case CommandError():
            return error
        case ConfigError():
            return usage(str(error))
        case _ if _is_full_store(error) or _is_full_store(error.__cause__):
            return CommandError("the metadata cannot be written: the disk is full", remedy=_FREE_SPACE)
        case RiverlogError():
            return CommandError(str(error))
        case OSError() if error.strerror:
            message = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
            return CommandError(message, remedy=_FREE_SPACE if error.errno in _FULL else "")
        case _:
            return _from_client(error) or CommandError(
                f"internal error: {type(error).__name__}: {error}",
                remedy="run it again with RIVERLOG_DEBUG=1 and report the traceback",
            )


def _is_full_store(error: BaseException | None) -> bool:
    """Whether the database of the metadata has found no room; it tells so in an exception of its own."""
    store = sys.modules.get("sqlite3")
    return store is not None and getattr(error, "sqlite_errorcode", None) == store.SQLITE_FULL


def _from_client(error: BaseException) -> CommandError | None:
    if "confluent_kafka" in sys.modules:
        from confluent_kafka import KafkaError, KafkaException

        if isinstance(error, KafkaException) and error.args and isinstance(error.args[0], KafkaError):
            return from_kafka(error.args[0])
    return None


def print_error(failure: CommandError) -> None:
    """One line and the remedy, on stderr."""
    coloured = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    red, cyan, plain = ("\x1b[1;31m", "\x1b[36m", "\x1b[0m") if coloured else ("", "", "")
    lines = [f"{red}error:{plain} {' '.join(failure.message.split())}"]
    if failure.remedy:
        lines.append(f"  {cyan}try:{plain} {failure.remedy}")
    sys.stderr.write("\n".join(lines) + "\n")


def key_values(pairs: Iterable[str], option: str) -> dict[str, str]:
    """`key=value` pairs as given to a repeatable option."""
    parsed = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise usage(f"{option} {pair!r} is not of the form key=value", remedy=f"{option} key=value")
        parsed[key.strip()] = value.strip()
    return parsed


def is_usage_error(error: Exception) -> bool:
    """Whether the option parser raised it. Its classes are private to typer; what they can do is not."""
    return hasattr(error, "format_message") and hasattr(error, "ctx")


def report_usage_error(error: Any) -> None:
    """An empty message means that the help has been printed instead."""
    if message := error.format_message():
        command = error.ctx.command_path if error.ctx else "riverlog"
        print_error(usage(message.rstrip("."), remedy=f"{command} --help"))


def _reason(error: "KafkaError") -> str:
    text = error.str().strip().rstrip(".").removeprefix("Broker: ").removeprefix("Local: ")
    number = error.code()
    if number > 0 and number in _BROKER_CODES:
        name = ErrorCode(number).name
        return text if name in text else f"{text} ({name})"
    return text


def _belongs_to_parser(error: BaseException) -> bool:
    return type(error).__module__.partition(".")[0] in ("typer", "click")


def _silence_stdout() -> None:
    # The reader of our output (head, less) has gone; the interpreter would complain when it flushes at exit.
    try:
        descriptor = sys.stdout.fileno()
    except OSError:
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


_BROKER_CODES = frozenset(int(code) for code in ErrorCode)
_FULL = (errno.ENOSPC, errno.EDQUOT)
_FREE_SPACE = "free space on that disk, or use another one; `serve` takes it with --data-dir"
_CHECK_CREDENTIALS = "check the credentials in --client-config, and what this user may do"
CHECK_ADDRESS = "check -b/--bootstrap-server and that the broker is up, or allow more time with --timeout"
_CHECK_NAME = "see what is there with `riverlog topic list`"

_MEANINGS: dict[str, tuple[ExitCode, str]] = {
    **dict.fromkeys(
        (
            "_AUTHENTICATION",
            "_SSL",
            "SASL_AUTHENTICATION_FAILED",
            "UNSUPPORTED_SASL_MECHANISM",
            "ILLEGAL_SASL_STATE",
            "TOPIC_AUTHORIZATION_FAILED",
            "GROUP_AUTHORIZATION_FAILED",
            "CLUSTER_AUTHORIZATION_FAILED",
            "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        ),
        (ExitCode.AUTHENTICATION, _CHECK_CREDENTIALS),
    ),
    **dict.fromkeys(
        ("_UNKNOWN_TOPIC", "UNKNOWN_TOPIC_OR_PART", "UNKNOWN_TOPIC_ID"),
        (ExitCode.NOT_FOUND, _CHECK_NAME),
    ),
    "_UNKNOWN_PARTITION": (
        ExitCode.NOT_FOUND,
        "`riverlog topic describe` shows the partitions; with --input json, --ignore-partitions places "
        "records by their keys",
    ),
    **dict.fromkeys(("GROUP_ID_NOT_FOUND", "RESOURCE_NOT_FOUND"), (ExitCode.NOT_FOUND, "")),
    **dict.fromkeys(
        (
            "_TRANSPORT",
            "_ALL_BROKERS_DOWN",
            "_RESOLVE",
            "_TIMED_OUT",
            "_TIMED_OUT_QUEUE",
            "_MSG_TIMED_OUT",
            "REQUEST_TIMED_OUT",
            "NETWORK_EXCEPTION",
            "BROKER_NOT_AVAILABLE",
            "COORDINATOR_NOT_AVAILABLE",
        ),
        (ExitCode.CONNECTION, CHECK_ADDRESS),
    ),
    "_INVALID_ARG": (
        ExitCode.USAGE,
        "client properties are librdkafka's (CONFIGURATION.md there lists them)",
    ),
    "MSG_SIZE_TOO_LARGE": (
        ExitCode.FAILURE,
        "allow larger ones with `riverlog topic alter TOPIC --set max.message.bytes=…`, or send smaller ones",
    ),
    "INVALID_RECORD": (
        ExitCode.FAILURE,
        'a compacted topic (cleanup.policy=compact) takes records with a key only: -k, -K, or "key" in JSON',
    ),
    "KAFKA_STORAGE_ERROR": (
        ExitCode.FAILURE,
        "the broker's disk is full or failing: its log says which; free space there, or shorten retention",
    ),
    "NOT_COORDINATOR": (
        ExitCode.FAILURE,
        "try again in a moment; a coordinator that goes on like this cannot write, and the broker's log says "
        "why: where the disk is full, free space there",
    ),
    "TOPIC_ALREADY_EXISTS": (ExitCode.FAILURE, "choose another name, or pass --if-not-exists"),
    "INVALID_REPLICATION_FACTOR": (
        ExitCode.FAILURE,
        "at most as many replicas as there are brokers (see `riverlog cluster brokers`), or start more",
    ),
    "TOPIC_EXCEPTION": (
        ExitCode.FAILURE,
        "a name is of letters, digits, '.', '_' and '-', at most 249, and differs from others in more than "
        "'.' for '_'",
    ),
    "INVALID_CONFIG": (ExitCode.FAILURE, "`riverlog config docs KEY` explains a key and its values"),
}
