"""Log levels of this process as a resource of the config APIs, in the names that Kafka's clients know.

The one place where the wire meets Python's `logging`. Changes last until the process ends.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from riverlog.controller.decisions.refusals import Refusal
from riverlog.model.config.alter import AlterOperation, Change
from riverlog.model.errors import ErrorCode

_ROOT: Final = "root"
_LEVELS: Final[Mapping[str, int]] = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": 5,
}


class LogLevels:
    def levels(self) -> dict[str, str]:
        """The level in force of every logger there is, by name."""
        loggers = {_ROOT: logging.getLogger()}
        loggers |= {
            name: logger
            for name, logger in sorted(logging.Logger.manager.loggerDict.items())
            if isinstance(logger, logging.Logger)
        }
        return {name: _name_of(logger.getEffectiveLevel()) for name, logger in loggers.items()}

    def change(self, changes: Sequence[Change], *, validate_only: bool) -> Refusal | None:
        """All or nothing."""
        known = self.levels()
        for change in changes:
            if refusal := _refuse(change, known):
                return refusal
        if not validate_only:
            for change in changes:
                level = (
                    _LEVELS[change.value or ""] if change.operation == AlterOperation.SET else logging.NOTSET
                )
                logging.getLogger(None if change.name == _ROOT else change.name).setLevel(level)
        return None


def _refuse(change: Change, known: Mapping[str, str]) -> Refusal | None:
    if change.operation not in (AlterOperation.SET, AlterOperation.DELETE):
        return Refusal(ErrorCode.INVALID_REQUEST, "A log level can be set or removed, nothing else.")
    if change.name not in known:
        return Refusal(ErrorCode.INVALID_CONFIG, f"There is no logger '{change.name}'.")
    if change.operation == AlterOperation.DELETE:
        if change.name == _ROOT:
            return Refusal(ErrorCode.INVALID_REQUEST, "The root logger must have a level.")
    elif change.value not in _LEVELS:
        levels = ", ".join(_LEVELS)
        return Refusal(ErrorCode.INVALID_CONFIG, f"'{change.value}' is no log level; there are {levels}.")
    return None


def _name_of(level: int) -> str:
    return next((name for name, least in _LEVELS.items() if level >= least), "TRACE")
