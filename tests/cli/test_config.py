"""`riverlog config`: no broker is asked."""

from pathlib import Path

import pytest

from tests.cli.running import CommandLine


@pytest.fixture
def offline() -> CommandLine:
    return CommandLine("127.0.0.1:1")


def test_show_names_the_source_of_each_value(
    offline: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "server.properties"
    path.write_text("# mine\nnum.partitions=3\nlog.segment.bytes=2000000\nlog.retention.hours=5\n")
    monkeypatch.setenv("RIVERLOG_LOG_SEGMENT_BYTES", "3000000")
    monkeypatch.setenv("RIVERLOG_LOG_RETENTION_HOURS", "6")

    rows = offline("config", "show", "-c", str(path), "-s", "log.retention.hours=7", "-o", "json").json

    found = {row["key"]: (row["value"], row["source"]) for row in rows}
    assert found["num.partitions"] == ("3", f"{path} line 2")
    assert found["log.segment.bytes"] == ("3000000", "environment variable RIVERLOG_LOG_SEGMENT_BYTES")
    assert found["log.retention.hours"] == ("7", "--set log.retention.hours")
    assert found["auto.create.topics.enable"] == ("true", "default")


def test_show_can_be_asked_for_single_keys(offline: CommandLine) -> None:
    rows = offline("config", "show", "num.partitions", "listeners", "-l", "127.0.0.1:0", "-o", "json").json

    assert [(row["key"], row["value"]) for row in rows] == [
        ("listeners", "PLAINTEXT://127.0.0.1:0"),
        ("num.partitions", "1"),
    ]


def test_show_hides_secrets(offline: CommandLine) -> None:
    outcome = offline("config", "show", "ssl.key.password", "-s", "ssl.key.password=hunter2")

    assert "hunter2" not in outcome.stdout + outcome.stderr
    assert "[hidden]" in outcome.stdout


def test_a_key_without_effect_warns_and_an_unknown_one_is_refused(offline: CommandLine) -> None:
    warned = offline("config", "show", "-s", "process.roles=broker", "num.partitions")
    refused = offline("config", "show", "-s", "num.partition=3", code=2)
    wrong = offline("config", "show", "-s", "num.partitions=many", code=2)

    assert "warning: " in warned.stderr
    assert "did you mean num.partitions?" in refused.stderr
    assert "many" in wrong.stderr


def test_docs_explain_a_key_of_a_server_or_a_topic(offline: CommandLine) -> None:
    [server] = offline("config", "docs", "log.segment.bytes", "-o", "json").json
    [topic] = offline("config", "docs", "--topic", "retention.ms", "-o", "json").json

    assert (server["type"], server["default"]) == ("int", "1073741824")
    assert topic["default"] == "604800000"
    assert len(topic["documentation"]) > 20
    text = offline("config", "docs", "retention.ms").stdout
    assert text.startswith("retention.ms\n")
    assert topic["documentation"] in text


def test_docs_list_every_key(offline: CommandLine) -> None:
    rows = offline("config", "docs", "-o", "json").json

    assert len(rows) > 200
    assert {"num.partitions", "riverlog.acks.fsync"} <= {row["key"] for row in rows}


def test_docs_of_an_unknown_key_are_not_found_but_the_nearest_is_named(offline: CommandLine) -> None:
    outcome = offline("config", "docs", "log.segment.byte", code=4)

    assert "log.segment.bytes" in outcome.stderr.splitlines()[1]
