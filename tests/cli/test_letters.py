"""The letters of options over all commands."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from riverlog.cli.application import app
from tests.cli.running import CommandLine


def commands(node: Any, path: str = "riverlog") -> Iterator[tuple[str, Any]]:
    yield path, node
    for name in getattr(node, "commands", {}):
        yield from commands(node.commands[name], f"{path} {name}")


def meanings() -> dict[str, dict[str, list[str]]]:
    """For each letter the long names that it stands for, and the commands where it does."""
    found: dict[str, dict[str, list[str]]] = {}
    for path, command in commands(get_command(app)):
        for option in (each for each in command.params if not getattr(each, "hidden", False)):
            letters = [name for name in option.opts if len(name) == 2 and name.startswith("-")]
            long = next((name for name in option.opts if name.startswith("--")), option.name)
            for letter in letters:
                found.setdefault(letter, {}).setdefault(long, []).append(path)
    return found


def test_a_letter_means_one_thing_in_every_command() -> None:
    found = meanings()

    assert {"-b", "-n", "-o", "-p", "-s"} <= found.keys()
    assert {letter: places for letter, places in found.items() if len(places) > 1} == {}


def test_old_letters_go_on_with_a_warning(riverlog: CommandLine, tmp_path: Path) -> None:
    topic = riverlog.topic()
    other = f"{topic}-other"
    file = tmp_path / "lines"
    file.write_text("a\nb\nc\n")

    created = riverlog(
        "topic", "create", other, "-p2", "-c", "retention.ms=1000", "-s", "retention.bytes=2000"
    )
    grown = riverlog("topic", "add-partitions", other, "-t", "3")
    produced = riverlog("produce", topic, "-f", str(file))
    consumed = riverlog("consume", topic, "--from", "start", "-ec", "2")

    assert "warning: -p will go: use --partitions\n" in created.stderr
    assert "warning: -c will go: use -s or --set or --config\n" in created.stderr
    [described] = riverlog("topic", "describe", other, "-o", "json").json
    settings = {each["key"]: each["value"] for each in described["configs"]}
    assert settings == {"retention.ms": "1000", "retention.bytes": "2000"}
    assert "warning: -t will go: use --total\n" in grown.stderr
    assert len(described["partitions"]) == 3
    assert "warning: -f will go: use --file\n" in produced.stderr
    assert consumed.stdout == "a\nb\n"
    assert consumed.stderr == "warning: -c will go: use -n or --count\n"


def test_old_letters_are_not_in_the_help_and_are_checked_as_the_new_ones(riverlog: CommandLine) -> None:
    assert " -c " not in riverlog("consume", "--help").stdout
    assert "-c" in riverlog("consume", "x", "-c", "0", code=2).stderr


@pytest.mark.parametrize("name", ["--count", "-n"])
def test_the_new_names_bring_no_warning(riverlog: CommandLine, name: str) -> None:
    topic = riverlog.topic()
    riverlog.produce(topic, "a", "b")

    outcome = riverlog("consume", topic, "--from", "start", name, "1")

    assert (outcome.stdout, outcome.stderr) == ("a\n", "")
