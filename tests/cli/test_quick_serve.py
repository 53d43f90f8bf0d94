"""The short way to `riverlog serve` means the same as the full parser."""

from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from riverlog.cli import quick_serve
from riverlog.cli.commands import serve as full
from riverlog.cli.starting import LogLevel, ServeOptions, load_settings
from tests.cli.running import CommandLine, python_imports

COMMAND_LINES = [
    [],
    ["--config", "a.properties", "--data-dir", "d", "--listen", "h:1", "--log-level", "debug", "--insecure"],
    ["-c", "a.properties", "-d", "d", "-l", "h:1", "-s", "a=1", "-s", "b=2=3"],
    ["--config=a", "--data-dir=d=e", "--listen=h:1", "--set=a=1", "--set", "b=", "--log-level=error"],
    ["--listen", "h:1", "--listen", "h:2", "--insecure", "--insecure"],
    ["--brokers", "3", "--data-dir", "d"],
    ["--brokers=1", "--supervised"],
]


@pytest.fixture
def options_of_full_parser(monkeypatch: pytest.MonkeyPatch) -> list[ServeOptions]:
    seen: list[ServeOptions] = []

    def remember(options: ServeOptions) -> int:
        seen.append(options)
        return 0

    monkeypatch.setattr(full, "start", remember)
    return seen


@pytest.mark.parametrize("arguments", COMMAND_LINES)
@pytest.mark.parametrize("environ", [{}, {"RIVERLOG_CONFIG": "from-env", "RIVERLOG_LOG_LEVEL": "warning"}])
def test_both_parsers_understand_the_same(
    arguments: list[str],
    environ: dict[str, str],
    options_of_full_parser: list[ServeOptions],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)

    result = CliRunner().invoke(full.app, arguments)

    assert result.exit_code == 0, result.stderr
    [options] = options_of_full_parser
    quick = quick_serve.parse(arguments)
    assert quick is not None
    assert (options.config, options.data_dir, options.listen) == (quick.config, quick.data_dir, quick.listen)
    assert tuple(options.pairs) == tuple(quick.pairs)
    assert (options.insecure, options.log_level) == (quick.insecure, quick.log_level)
    assert (options.brokers, options.supervised) == (quick.brokers, quick.supervised)


def test_every_option_of_serve_is_known_to_the_quick_parser() -> None:
    command: Any = typer.main.get_command(full.app)
    named = {option for parameter in command.params for option in parameter.opts if parameter.name != "help"}

    known = {
        option
        for option in named
        if any(quick_serve.parse([option, *value]) is not None for value in ([], ["info"], ["2"]))
    }

    assert known == named


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["-h"],
        ["--lis", "h:1"],
        ["--listen"],
        ["extra"],
        ["--log-level", "loud"],
        ["-x"],
        ["--brokers", "0"],
    ],
)
def test_whatever_is_unusual_goes_to_the_full_parser(arguments: list[str]) -> None:
    assert quick_serve.parse(arguments) is None


@pytest.mark.parametrize(
    "arguments", [("--listen", "nowhere"), ("--set", "nonsense"), ("-c", "/no/such/file")]
)
def test_a_mistake_is_reported_in_the_same_words(arguments: tuple[str, ...]) -> None:
    riverlog = CommandLine("")

    quick = riverlog.execute("serve", *arguments)
    slow = riverlog("serve", *arguments, code=2)

    assert (quick.code, quick.stdout) == (2, "")
    assert quick.stderr == slow.stderr
    assert quick.stderr.startswith("error: ")


def test_the_options_become_settings() -> None:
    options = ServeOptions(None, "d", "[::1]:0", ("num.partitions=3", "log.dirs=x"), True, LogLevel.INFO)

    settings = load_settings(options)

    assert settings.static["num.partitions"] == "3"
    assert settings.static["log.dirs"] == "d"
    assert settings.static["listeners"] == "PLAINTEXT://[::1]:0"
    assert settings.static["riverlog.insecure"] == "true"
    assert settings.origin("log.dirs") == "--data-dir"
    several = load_settings(ServeOptions(listen="INNER://h:1,OUTER://h:2"))
    assert several.static["listeners"] == "INNER://h:1,OUTER://h:2"


def test_serving_loads_neither_the_option_parser_nor_a_client() -> None:
    loaded = python_imports("serve", "--config", "/no/such/file")

    assert not {"typer", "rich", "pydantic", "confluent_kafka"} & loaded
