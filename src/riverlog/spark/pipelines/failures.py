"""Why a pipeline cannot be run, and what Spark's exceptions say in one line."""

import re
from typing import Any, Final

from riverlog.model.errors import RiverlogError

_ERROR_CLASS: Final = re.compile(r"^\[[A-Z0-9_.]+\]\s*")
_TERMINATED: Final = re.compile(r"Query \[id = [^]]*\] terminated with exception: |\(STREAM_FAILED\) ")
_SQLSTATE: Final = re.compile(r"\s*SQLSTATE: \w{5};?")
_PYTHON_RAISED: Final = re.compile(
    r"^(?:riverlog\.[\w.]+|(?:[\w.]+\.)?\w*(?:Error|Exception)): (.+)$", re.MULTILINE
)


class PipelineError(RiverlogError):
    """What happened and why, and in `remedy` what to do next."""

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


class ProjectNotFound(PipelineError):  # noqa: N818 - named for what it is
    """There is no project where one was looked for."""


class SparkUnreachable(PipelineError):  # noqa: N818 - named for what it is
    """A cluster or a Spark Connect server did not answer."""


def one_line(error: BaseException | str) -> str:
    """The sentence of a Spark error that helps: without its class, plan and stack.

    What a Python data source raised on a worker is the last line of a traceback inside Spark's message, and
    says more than all of the rest.
    """
    text = error if isinstance(error, str) else _message(error)
    raised = _PYTHON_RAISED.findall(text) if "Traceback (most recent call last)" in text else []
    sentence = raised[-1] if raised else _first_paragraph(text)
    for noise in (_ERROR_CLASS, _TERMINATED, _ERROR_CLASS, _SQLSTATE):
        sentence = noise.sub("", sentence.strip())
    return sentence.strip().rstrip(";")


def _message(error: Any) -> str:
    get = getattr(error, "getMessage", None)
    return str(get() if callable(get) and _has_message(error) else error)


def _has_message(error: Any) -> bool:
    """PySpark's own exceptions carry one only when they have an error class."""
    return bool(getattr(error, "_message", None))


def _first_paragraph(text: str) -> str:
    lines: list[str] = []
    for line in text.strip().splitlines():
        if lines and (
            not line.strip() or line.lstrip().startswith(("'", "+-", "at ", "JVM stacktrace", "=="))
        ):
            break
        lines.append(line.strip())
    return " ".join(lines)
