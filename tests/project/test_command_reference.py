"""docs/cli.md beside what `--help` prints."""

import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from riverlog.cli.application import app
from riverlog.model.config.parse import load
from tests.cli.running import CommandLine
from tests.cli.test_letters import commands

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"
SETTINGS = DOCS.with_name("configuration.md")
HEADINGS = {"Usage", "Arguments", "Options", "Connection"}
_OF_THE_PARSER = re.compile(r"<[\w\[\] ]+>|\[(default|env var): |[│╭╮╰╯─*`<>\[\],]+")
"""Names of types, frames and brackets; what is in the brackets stays."""


def words(text: str) -> list[str]:
    return [word.strip("().:") for word in _OF_THE_PARSER.sub(" ", text).split() if word.strip("().:")]


def section(path: str) -> str:
    """What is said of one command, with the line on help that holds for all of them."""
    document = DOCS.read_text(encoding="utf-8").replace("\\|", "|")
    before, _, _ = document.partition("\n## ")
    _, _, rest = document.partition(f"# `{path}`\n")
    own, _, _ = re.sub(r"(?m)^#+ `", "\f", rest).partition("\f")
    return before + own


@pytest.mark.parametrize(("path", "command"), list(commands(get_command(app))))
def test_the_reference_has_every_word_of_the_help(path: str, command: Any) -> None:
    text = CommandLine("127.0.0.1:1")(*path.split()[1:], "--help").stdout
    shown, _, below = text.partition("─ Commands ─")

    said = set(words(section(path)))

    assert [word for word in words(shown) if word not in said | HEADINGS] == []
    assert bool(below) == hasattr(command, "commands")


def variables_of_commands() -> set[str]:
    options = [each for _, command in commands(get_command(app)) for each in command.params]
    variables = {each.envvar for each in options if each.envvar}
    assert len(variables) >= 4
    return variables


def test_no_environment_variable_of_a_command_is_taken_for_a_setting_of_the_broker() -> None:
    assert load(environment=dict.fromkeys(variables_of_commands(), "a:1")).given == {}


def test_every_environment_variable_of_a_command_is_among_the_settings() -> None:
    variables = variables_of_commands()
    table = SETTINGS.read_text(encoding="utf-8")
    assert [name for name in sorted(variables) if f"| `{name}` |" not in table] == []
