"""What is different at a terminal: questions are asked, and long work shows its progress on stderr."""

import os
import pty
import subprocess
from pathlib import Path

from tests.cli.running import EXECUTABLE, CommandLine


def test_a_question_is_asked_and_no_means_no(riverlog: CommandLine) -> None:
    topic = riverlog.topic()

    code, asked = _at_terminal(riverlog, ("topic", "delete", topic), answer=b"n\n")

    assert (code, b"for good" in asked) == (1, True)
    assert riverlog("topic", "list", topic, "-o", "json").json


def test_a_question_is_asked_and_yes_means_yes(riverlog: CommandLine) -> None:
    topic = riverlog.topic()

    code, _ = _at_terminal(riverlog, ("topic", "delete", topic), answer=b"y\n")

    assert code == 0
    assert riverlog("topic", "list", topic, "-o", "json").json == []


def test_a_file_that_is_sent_shows_its_progress(riverlog: CommandLine, tmp_path: Path) -> None:
    topic = riverlog.topic()
    path = tmp_path / "many.txt"
    path.write_text("".join(f"{number}\n" for number in range(20_000)))

    code, screen = _at_terminal(riverlog, ("produce", topic, "--file", str(path)))

    assert code == 0
    assert b"many.txt" in screen
    assert b"20000 of 20000 records delivered" in screen


def _at_terminal(riverlog: CommandLine, arguments: tuple[str, ...], answer: bytes = b"") -> tuple[int, bytes]:
    """Run with a terminal for stdin and stderr; the exit code and what the terminal showed."""
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            [EXECUTABLE, *arguments],
            stdin=theirs,
            stdout=subprocess.DEVNULL,
            stderr=theirs,
            env={**os.environ, **riverlog.environment, "TERM": "xterm"},
        )
        os.close(theirs)
        os.write(ours, answer)
        shown = _read_all(ours)
        return process.wait(30), shown
    finally:
        os.close(ours)


def _read_all(descriptor: int) -> bytes:
    shown = b""
    while True:
        try:
            piece = os.read(descriptor, 65536)
        except OSError:  # How Linux says that the other side of a terminal has gone.
            return shown
        if not piece:
            return shown
        shown += piece
