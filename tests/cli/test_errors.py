"""What a person sees when something is wrong: one line, a remedy, the exit code, no traceback."""

import socket
import threading
import time
from pathlib import Path

import pytest

from riverlog.cli.application import COMMANDS
from riverlog.cli.asking.connection import client_properties
from tests.cli.running import CommandLine, python_imports


def test_a_refused_connection_is_found_at_once(riverlog: CommandLine) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
    started = time.monotonic()

    outcome = riverlog("topic", "list", "-b", address, code=5)

    assert time.monotonic() - started < 3
    assert outcome.stderr.splitlines()[0] == f"error: cannot connect to {address}: connection refused"
    assert "riverlog serve" in outcome.stderr.splitlines()[1]
    assert outcome.stdout == ""


@pytest.mark.parametrize("command", [("topic", "list"), ("consume", "t"), ("produce", "t")])
def test_a_server_that_never_answers_is_a_time_out(riverlog: CommandLine, command: tuple[str, ...]) -> None:
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        address = f"127.0.0.1:{mute.getsockname()[1]}"
        started = time.monotonic()

        outcome = riverlog(*command, "-b", address, "--timeout", "1.5", code=5)

        assert time.monotonic() - started < 10
        assert outcome.stderr.startswith("error: ")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "an HTTP server answers"),
        (b"\x15\x03\x03\x00\x02\x02\x32\x00", "it speaks TLS"),
        (b"220 mail.example ESMTP\r\n", "does not speak Kafka's protocol"),
        (b"", "it closes the connection"),
    ],
)
def test_a_port_that_is_not_kafka_s_is_named_as_such(
    riverlog: CommandLine, answer: bytes, words: str
) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        address = f"127.0.0.1:{server.getsockname()[1]}"

        def answer_once() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(14, socket.MSG_WAITALL)
                connection.sendall(answer)

        thread = threading.Thread(target=answer_once)
        thread.start()
        outcome = riverlog("topic", "list", "-b", address, code=5)
        thread.join()

    assert f"{address}: " in outcome.stderr
    assert words in outcome.stderr


def test_an_unknown_host_is_a_connection_failure(riverlog: CommandLine) -> None:
    assert "no such host" in riverlog("topic", "list", "-b", "no-such-host.invalid:9092", code=5).stderr


@pytest.mark.parametrize("address", ["", "host:port", "host:0", ":9092", "[::1:9092"])
def test_an_address_that_is_none_is_a_usage_error(riverlog: CommandLine, address: str) -> None:
    assert "address" in riverlog("topic", "list", "-b", address, code=2).stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("topics",), "No such command"),
        (("topic", "lst"), "'list'"),
        (("topic", "list", "--bogus"), "--bogus"),
        (("topic", "create"), "TOPIC"),
        (("topic", "create", "x", "--partitions", "0"), "--partitions"),
        (("produce", "x", "-z", "rar"), "rar"),
        (("produce", "x", "--file", "/no/such/file"), "/no/such/file"),
        (("consume", "x", "-o", "xml"), "xml"),
        (("topic", "list", "-X", "nonsense"), "key=value"),
        (("topic", "list", "-X", "no.such.property=1"), "no.such.property"),
    ],
)
def test_a_usage_error_is_one_line_and_a_remedy(
    riverlog: CommandLine, arguments: tuple[str, ...], words: str
) -> None:
    outcome = riverlog(*arguments, code=2)

    assert outcome.stdout == ""
    problem, remedy = outcome.stderr.splitlines()
    assert problem.startswith("error: ")
    assert words in problem
    assert remedy.startswith("  try: ")


def test_wrong_credentials_are_exit_code_3(riverlog: CommandLine) -> None:
    settings = (
        "security.protocol=sasl_plaintext",
        "sasl.mechanism=PLAIN",
        "sasl.username=u",
        "sasl.password=p",
    )
    options = [word for setting in settings for word in ("-X", setting)]

    outcome = riverlog("topic", "list", *options, "--timeout", "5", code=3)

    assert "credentials" in outcome.stderr


def test_client_properties_come_from_a_file_and_over_it_from_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("# mine\n\nsasl.username = me\n! also\nclient.id=a=b\n")

    assert client_properties(path, ["sasl.username=you"]) == {"sasl.username": "you", "client.id": "a=b"}


def test_a_file_of_client_properties_is_used(riverlog: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("no.such.property=1\n")

    assert "no.such.property" in riverlog("topic", "list", "--client-config", str(path), code=2).stderr
    path.write_text("nonsense\n")
    assert f"{path}:1" in riverlog("topic", "list", "--client-config", str(path), code=2).stderr


def test_the_executable_reports_without_a_traceback(riverlog: CommandLine) -> None:
    outcome = riverlog.execute("topic", "describe", "cli-never-created")

    assert outcome.code == 4
    assert outcome.stderr.startswith("error: topic cli-never-created: ")
    assert "Traceback" not in outcome.stderr


def test_the_traceback_can_be_had(riverlog: CommandLine) -> None:
    outcome = riverlog.execute("topic", "describe", "cli-never-created", environ={"RIVERLOG_DEBUG": "1"})

    assert outcome.code == 1
    assert "Traceback" in outcome.stderr


@pytest.mark.parametrize(
    "arguments", [("--help",), ("topic", "--help"), ("consume", "-h"), ("serve", "--help")]
)
def test_help_goes_to_stdout_and_shows_examples(riverlog: CommandLine, arguments: tuple[str, ...]) -> None:
    outcome = riverlog(*arguments)

    assert "Usage: riverlog" in outcome.stdout
    assert outcome.stderr == ""


def test_the_root_help_names_every_command(riverlog: CommandLine) -> None:
    text = riverlog("--help").stdout

    for command in COMMANDS:
        assert f" {command} " in text


def test_help_needs_no_client_library() -> None:
    assert not {"confluent_kafka", "uvloop"} & python_imports("serve", "--help")


def test_version_names_what_is_installed(riverlog: CommandLine) -> None:
    versions = riverlog("version", "-o", "json").json

    assert set(versions) == {"riverlog", "python", "confluent-kafka", "librdkafka"}
    assert riverlog("version", "--short").stdout.strip() == versions["riverlog"]
    assert riverlog("--version").stdout == f"riverlog {versions['riverlog']}\n"


def test_completion_completes_commands(riverlog: CommandLine) -> None:
    typed = {"_RIVERLOG_COMPLETE": "complete_bash", "COMP_WORDS": "riverlog topic de", "COMP_CWORD": "2"}

    assert riverlog.execute(environ=typed).stdout.split() == ["describe", "delete"]


def test_completion_can_be_shown(riverlog: CommandLine) -> None:
    named_shell = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    outcome = riverlog.execute("--show-completion", "bash", environ=named_shell)

    assert outcome.code == 0
    assert "_RIVERLOG_COMPLETE" in outcome.stdout
