"""Logs are saved in parallel, somebody says so when it takes long, and a failure is told when all is done."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest

from riverlog.model.errors import StorageError
from riverlog.storage.directory import closing
from riverlog.storage.log.log import Log
from tests.waiting import eventually


class Saved:
    """Stands for a log, and for its `sync`."""

    def __init__(self, save: Any) -> None:
        self.sync = self
        self._save = save
        self.is_closed = False

    def write_state(self) -> None:
        pass

    def close(self, *, parent_is_synced: bool) -> None:
        assert parent_is_synced
        self._save()
        self.is_closed = True


def save(logs: list[Saved], threads: int) -> None:
    with ThreadPoolExecutor(threads) as executor:
        asyncio.run(closing.save("/data", cast(list[Log], logs), executor))


def test_several_are_saved_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closing, "_LOGS_AT_ONCE", 1)
    together = threading.Barrier(4)
    logs = [Saved(lambda: together.wait(30)) for _ in range(4)]
    save(logs, 4)
    assert all(log.is_closed for log in logs)


def test_it_is_told_how_far_a_long_shutdown_is(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(closing, "_TELL_EVERY_S", 0.01)
    monkeypatch.setattr(closing, "_LOGS_AT_ONCE", 1)

    def until_told() -> None:
        told = "1 of the 2 open logs of /data are saved"
        eventually(lambda: any(told in each for each in caplog.messages))

    with caplog.at_level("INFO"):
        save([Saved(lambda: None), Saved(until_told)], 1)


def test_a_failure_is_told_when_nothing_is_in_the_making_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closing, "_LOGS_AT_ONCE", 1)

    def fail() -> None:
        raise StorageError("no")

    logs = [Saved(fail), Saved(lambda: None), Saved(lambda: None)]
    with pytest.raises(StorageError, match="no"):
        save(logs, 1)
    assert [log.is_closed for log in logs] == [False, True, True]
