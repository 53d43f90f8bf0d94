"""`riverlog topic` on a real broker."""

from datetime import datetime

import pytest

from tests.cli.running import CommandLine


def test_a_created_topic_is_listed_with_its_partitions(riverlog: CommandLine) -> None:
    topic = riverlog.topic("--partitions", "3", "--replication-factor", "1")

    rows = riverlog("topic", "list", topic, "-o", "json").json

    assert rows == [
        {"topic": topic, "partitions": 3, "replication_factor": 1, "under_replicated": 0, "leaderless": 0}
    ]


def test_a_list_is_a_table_unless_json_is_asked_for(riverlog: CommandLine) -> None:
    topic = riverlog.topic()

    heading, line = riverlog("topic", "list", topic).stdout.splitlines()

    assert heading.split()[:2] == ["TOPIC", "PARTITIONS"]
    assert line.split()[:2] == [topic, "1"]


def test_an_empty_list_is_an_empty_json_array(riverlog: CommandLine) -> None:
    assert riverlog("topic", "list", "no-such-*", "-o", "json").json == []


def test_creating_a_topic_twice_fails_and_names_the_way_out(riverlog: CommandLine) -> None:
    topic = riverlog.topic()

    again = riverlog("topic", "create", topic, code=1)

    assert "TOPIC_ALREADY_EXISTS" in again.stderr
    assert "--if-not-exists" in again.stderr
    assert again.stdout == ""
    riverlog("topic", "create", topic, "--if-not-exists")


def test_more_replicas_than_brokers_are_refused_with_a_remedy(riverlog: CommandLine) -> None:
    refused = riverlog("topic", "create", "cli-bad", "-r", "3", code=1).stderr

    assert "only 1 broker is registered" in refused
    assert "try: at most as many replicas as there are brokers" in refused


def test_a_bad_name_and_a_bad_setting_are_refused(riverlog: CommandLine) -> None:
    refused = riverlog("topic", "create", "no/slash", code=1).stderr
    assert "INVALID_TOPIC_EXCEPTION" in refused
    assert "try: a name is of letters, digits, '.', '_' and '-'" in refused
    assert "nonsense" in riverlog("topic", "create", "cli-bad", "-s", "retention.ms=nonsense", code=1).stderr
    assert "key=value" in riverlog("topic", "create", "cli-bad", "-s", "retention.ms", code=2).stderr


def test_describe_shows_offsets_replicas_and_overrides(riverlog: CommandLine) -> None:
    topic = riverlog.topic("--partitions", "2", "-s", "retention.ms=12345")
    riverlog.produce(topic, "a", "b", "c", options=("-p", "1"))

    [description] = riverlog("topic", "describe", topic, "-o", "json").json

    first, second = description["partitions"]
    assert description["topic"] == topic
    assert len(description["topic_id"]) == 22
    assert (first["start"], first["end"], second["start"], second["end"]) == (0, 0, 0, 3)
    assert first["replicas"] == first["isr"] == [first["leader"]]
    overrides = {
        row["key"]: row["value"] for row in description["configs"] if row["source"] == "dynamic topic"
    }
    assert overrides == {"retention.ms": "12345"}


def test_describe_shows_what_a_partition_takes_on_disk(riverlog: CommandLine) -> None:
    topic = riverlog.topic("--partitions", "2")
    riverlog.produce(topic, "x" * 5000, options=("-p", "1"))

    [description] = riverlog("topic", "describe", topic, "-o", "json").json

    empty, filled = (partition["size"] for partition in description["partitions"])
    assert empty == 0
    assert 5000 < filled < 6000


def test_describe_is_a_table_for_people(riverlog: CommandLine) -> None:
    topic = riverlog.topic("-s", "compression.type=lz4")

    text = riverlog("topic", "describe", topic).stdout

    assert topic in text.splitlines()[0]
    assert "PARTITION" in text
    assert "compression.type" in text


def test_all_configs_include_the_defaults(riverlog: CommandLine) -> None:
    topic = riverlog.topic()

    [description] = riverlog("topic", "describe", topic, "--all-configs", "-o", "json").json

    configs = {row["key"]: row["value"] for row in description["configs"]}
    assert configs["max.message.bytes"] == "1048588"


@pytest.mark.parametrize(
    "command",
    [
        ("topic", "describe"),
        ("topic", "alter", "--set", "retention.ms=1"),
        ("topic", "add-partitions", "--total", "3"),
        ("topic", "trim", "--before", "end", "--yes"),
        ("topic", "delete", "--yes"),
        ("consume", "--exit-at-end"),
    ],
)
def test_a_topic_that_is_not_there_is_exit_code_4(riverlog: CommandLine, command: tuple[str, ...]) -> None:
    outcome = riverlog(*command, "cli-never-created", code=4)

    assert outcome.stderr.startswith("error: ")
    assert "cli-never-created" in outcome.stderr
    assert riverlog("topic", "list", "cli-never-created", "-o", "json").json == []


def test_alter_sets_and_unsets_and_leaves_the_rest(riverlog: CommandLine) -> None:
    topic = riverlog.topic("-s", "retention.ms=1000", "-s", "segment.bytes=2000000")

    riverlog("topic", "alter", topic, "--set", "compression.type=zstd", "--unset", "retention.ms")

    [description] = riverlog("topic", "describe", topic, "-o", "json").json
    overrides = {
        row["key"]: row["value"] for row in description["configs"] if row["source"] == "dynamic topic"
    }
    assert overrides == {"compression.type": "zstd", "segment.bytes": "2000000"}


def test_alter_refuses_nonsense(riverlog: CommandLine) -> None:
    topic = riverlog.topic()

    assert "nothing to change" in riverlog("topic", "alter", topic, code=2).stderr
    assert "INVALID_CONFIG" in riverlog("topic", "alter", topic, "-s", "compression.type=x", code=1).stderr
    both = riverlog("topic", "alter", topic, "-s", "retention.ms=1", "-u", "retention.ms", code=2)
    assert "both set and unset" in both.stderr


def test_partitions_can_be_added_but_not_taken_away(riverlog: CommandLine) -> None:
    topic = riverlog.topic("--partitions", "2")

    riverlog("topic", "add-partitions", topic, "--more", "2")
    riverlog("topic", "add-partitions", topic, "--total", "5")

    assert riverlog("topic", "list", topic, "-o", "json").json[0]["partitions"] == 5
    assert "INVALID_PARTITIONS" in riverlog("topic", "add-partitions", topic, "--total", "3", code=1).stderr
    riverlog("topic", "add-partitions", topic, code=2)


def test_trim_deletes_what_lies_before_an_offset(riverlog: CommandLine) -> None:
    topic = riverlog.topic("--partitions", "2")
    riverlog.produce(topic, *"abcde", options=("-p", "0"))
    riverlog.produce(topic, *"fg", options=("-p", "1"))

    rows = riverlog("topic", "trim", topic, "--before", "3", "-p", "0", "--yes", "-o", "json").json

    assert rows == [{"topic": topic, "partition": 0, "start": 3, "end": 5}]
    assert sorted(riverlog.consume(topic).stdout.split()) == ["d", "e", "f", "g"]
    riverlog("topic", "trim", topic, "--before", "end", "--yes")
    assert riverlog.consume(topic).stdout == ""


def test_trim_by_time_keeps_what_is_at_or_after_it(riverlog: CommandLine) -> None:
    topic = riverlog.topic()
    records = [f'{{"value": "{number}", "timestamp": {1_700_000_000_000 + number}}}' for number in range(5)]
    riverlog.produce(topic, *records, options=("-i", "json"))

    riverlog("topic", "trim", topic, "--before", "@1700000000003", "--yes")

    assert riverlog.consume(topic).stdout.split() == ["3", "4"]


def test_trim_refuses_what_is_beyond_the_end(riverlog: CommandLine) -> None:
    topic = riverlog.topic()
    riverlog.produce(topic, "a")

    assert "beyond the end" in riverlog("topic", "trim", topic, "--before", "7", "--yes", code=1).stderr
    riverlog("topic", "trim", topic, "--before", "start", "--yes", code=2)
    assert (
        "no partition 9" in riverlog("topic", "trim", topic, "--before", "0", "-p", "9", "-y", code=4).stderr
    )


@pytest.mark.parametrize("command", [("delete",), ("trim", "--before", "end")])
def test_without_a_terminal_what_cannot_be_undone_needs_yes(
    riverlog: CommandLine, command: tuple[str, ...]
) -> None:
    topic = riverlog.topic()

    refused = riverlog("topic", *command, topic, code=2)

    assert "--yes" in refused.stderr
    assert riverlog("topic", "list", topic, "-o", "json").json


def test_delete_removes_several_or_none(riverlog: CommandLine) -> None:
    first, second = riverlog.topic(), riverlog.topic()

    riverlog("topic", "delete", first, "cli-never-created", second, "--yes", code=4)
    assert len(riverlog("topic", "list", first, "-o", "json").json) == 1
    riverlog("topic", "delete", first, "cli-never-created", second, "--yes", "--if-exists")

    assert riverlog("topic", "list", first, "-o", "json").json == []
    assert riverlog("topic", "list", second, "-o", "json").json == []


def test_a_setting_that_does_not_exist_names_the_nearest(riverlog: CommandLine) -> None:
    topic = riverlog.topic()

    altered = riverlog("topic", "alter", topic, "--set", "retention.m=5", code=1)
    created = riverlog("topic", "create", f"{topic}-2", "-s", "cleanup.polcy=compact", code=1)

    assert "did you mean retention.ms?" in altered.stderr
    assert "did you mean cleanup.policy?" in created.stderr


def test_to_unset_what_is_not_set_says_so(riverlog: CommandLine) -> None:
    topic = riverlog.topic("-s", "retention.ms=1000")

    outcome = riverlog("topic", "alter", topic, "--unset", "retention.ms", "--unset", "segment.ms")

    assert f"segment.ms was not set on {topic}" in outcome.stderr
    assert "retention.ms was not set" not in outcome.stderr
    assert f"altered topic {topic}" in outcome.stderr

    again = riverlog("topic", "alter", topic, "--unset", "retention.ms", "--unset", "segment.ms")

    assert f"topic {topic} stays as it was" in again.stderr
    assert "altered topic" not in again.stderr


def test_a_time_without_a_zone_is_said_to_be_local_where_it_deletes(riverlog: CommandLine) -> None:
    topic = riverlog.topic()
    riverlog.produce(topic, "kept")

    outcome = riverlog("topic", "trim", topic, "--before", "@2020-01-31T00:00:00", "--yes")

    moment = datetime(2020, 1, 31).astimezone().isoformat()
    assert f"records before {moment} (local time, as no zone is given) go" in outcome.stderr
    assert "local without a zone" in riverlog("topic", "trim", "--help").stdout
