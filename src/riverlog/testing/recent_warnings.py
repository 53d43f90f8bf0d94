"""The last warnings of the brokers of this process, for the account of one when a test has failed."""

import logging
from collections import deque
from typing import Final

_KEPT_MAX: Final = 200
_TOLD_MAX: Final = 20
_LOGGER: Final = logging.getLogger("riverlog")


class RecentWarnings(logging.Handler):
    """Attached once, for good. Python prints warnings on stderr only as long as nobody handles them; so that
    this handler does not silence them, it does the same."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._kept: deque[tuple[int | None, str]] = deque(maxlen=_KEPT_MAX)

    def attach(self) -> None:
        if self not in _LOGGER.handlers:
            _LOGGER.addHandler(self)

    def of_thread(self, ident: int | None) -> list[str]:
        """What a broker has complained of in its own thread."""
        return [text for thread, text in tuple(self._kept) if thread == ident][-_TOLD_MAX:]

    def emit(self, record: logging.LogRecord) -> None:
        self._kept.append((record.thread, f"{record.levelname} {record.name}: {record.getMessage()}"))
        if logging.lastResort is not None and not logging.root.handlers and _LOGGER.handlers == [self]:
            logging.lastResort.handle(record)


RECENT_WARNINGS: Final = RecentWarnings()
