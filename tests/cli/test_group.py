"""`riverlog group`, with real consumers as members."""

import json
import signal
import subprocess
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from riverlog.client.broker_connection import BrokerConnection
from riverlog.model.network import Address
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.cli.group_member import member
from tests.cli.running import EXECUTABLE, CommandLine
from tests.waiting import eventually


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def topic(riverlog: CommandLine) -> str:
    """Ten records in each of two partitions."""
    name = riverlog.topic("--partitions", "2")
    for partition in ("0", "1"):
        riverlog.produce(name, *map(str, range(10)), options=("-p", partition))
    return name


def commit(riverlog: CommandLine, group: str, topic: str, *offsets: int) -> None:
    consumer = Consumer({"bootstrap.servers": riverlog.bootstrap, "group.id": group})
    wanted = [TopicPartition(topic, index, offset) for index, offset in enumerate(offsets)]
    consumer.commit(offsets=wanted, asynchronous=False)
    consumer.close()


def offsets(riverlog: CommandLine, group: str) -> dict[int, int | None]:
    [found] = riverlog("group", "describe", group, "-o", "json").json
    return {each["partition"]: each["offset"] for each in found["partitions"]}


def test_list_shows_groups_that_match(riverlog: CommandLine, group: str, topic: str) -> None:
    commit(riverlog, group, topic, 1, 2)
    assert riverlog("group", "list", f"{group}*", "-o", "json").json == [
        {"group": group, "type": "classic", "state": "empty"}
    ]
    assert group in riverlog("group", "list").stdout
    nothing = riverlog("group", "list", "no-such-*")
    assert (nothing.stdout, nothing.stderr) == ("", "no consumer groups\n")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_describe_shows_lag_owner_host_and_client(
    riverlog: CommandLine, group: str, topic: str, protocol: str
) -> None:
    with member(riverlog, group, topic, group_protocol=protocol) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 0, 4)], asynchronous=False)
        [found] = riverlog("group", "describe", group, "-o", "json").json
        member_id = consumer.memberid()
    assert (found["group"], found["type"], found["state"]) == (group, protocol, "stable")
    assert (found["members"], found["lag"], found["idle_members"]) == (1, 16, [])
    owner = {"owner": member_id, "host": "127.0.0.1", "client": "the-client"}
    assert found["partitions"] == [
        {"topic": topic, "partition": 0, "offset": 4, "end": 10, "lag": 6, **owner},
        {"topic": topic, "partition": 1, "offset": None, "end": 10, "lag": 10, **owner},
    ]


def test_describe_counts_what_has_no_commit_yet(riverlog: CommandLine, group: str, topic: str) -> None:
    commit(riverlog, group, topic, 4)

    [found] = riverlog("group", "describe", group, "-o", "json").json
    shown = riverlog("group", "describe", group).stdout

    assert [(each["offset"], each["lag"]) for each in found["partitions"]] == [(4, 6), (None, 10)]
    assert found["lag"] == 16
    assert "lag 16" in shown
    assert "no commit yet" in shown


def test_describe_names_a_static_member_by_its_own_name(
    riverlog: CommandLine, group: str, topic: str
) -> None:
    with member(riverlog, group, topic, group_instance_id="rack-7"):
        shown = riverlog("group", "describe", group).stdout
    assert "1 member" in shown
    assert "rack-7" in shown


def test_describe_shows_a_group_whose_topic_is_gone(riverlog: CommandLine, group: str) -> None:
    topic = riverlog.topic()
    kept = riverlog.topic()
    commit(riverlog, group, topic, 0)
    commit(riverlog, group, kept, 0)
    riverlog("topic", "delete", topic, "--yes")
    [found] = riverlog("group", "describe", group, "-o", "json").json
    assert {each["topic"]: each["lag"] for each in found["partitions"]}[kept] == 0


def test_describe_watch_goes_on_until_it_is_interrupted(
    riverlog: CommandLine, group: str, topic: str
) -> None:
    commit(riverlog, group, topic, 3, 3)
    command = [EXECUTABLE, "group", "describe", group, "--watch", "--interval", "0.1", "-o", "json"]
    with subprocess.Popen(
        [*command, "-b", riverlog.bootstrap], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as watching:
        assert watching.stdout is not None
        assert watching.stderr is not None
        first = json.loads(watching.stdout.readline())
        commit(riverlog, group, topic, 10, 10)
        while (later := json.loads(watching.stdout.readline())) == first:
            pass
        watching.send_signal(signal.SIGINT)
        assert watching.wait(10) == 0
        assert watching.stderr.read() == ""
    assert (first[0]["lag"], later[0]["lag"]) == (14, 0)


def test_a_group_that_is_not_there_is_not_found(riverlog: CommandLine, group: str) -> None:
    for command in (["describe", group], ["delete", group, "--yes"], ["export", group]):
        missing = riverlog("group", *command, code=4)
        assert group in missing.stderr
        assert missing.stdout == ""
    riverlog("group", "seek", group, "--to", "earliest", code=4)


@pytest.mark.parametrize(
    ("to", "expected"), [("earliest", 0), ("latest", 10), ("7", 7), ("-3", 7), ("@0", 0), ("99", 10)]
)
def test_seek_sets_the_offsets_of_all_that_was_read(
    riverlog: CommandLine, group: str, topic: str, to: str, expected: int
) -> None:
    commit(riverlog, group, topic, 4)
    tried = riverlog("group", "seek", group, f"--to={to}", "--dry-run", "-o", "json")
    assert tried.json == [
        {"group": group, "topic": topic, "partition": 0, "from": 4, "to": expected},
        {"group": group, "topic": topic, "partition": 1, "from": None, "to": expected},
    ]
    assert offsets(riverlog, group) == {0: 4, 1: None}
    moved = riverlog("group", "seek", group, f"--to={to}", "-o", "json")
    assert moved.json == tried.json
    assert offsets(riverlog, group) == {0: expected, 1: expected}
    assert ("has no offset 99" in moved.stderr) == (to == "99")


def test_seek_makes_a_new_group_for_a_topic_that_is_named(
    riverlog: CommandLine, group: str, topic: str
) -> None:
    riverlog("group", "seek", group, "--to", "5", "--topic", topic, "-p", "1")
    assert offsets(riverlog, group) == {0: None, 1: 5}


def test_nothing_is_changed_while_a_group_has_members(
    riverlog: CommandLine, group: str, topic: str, tmp_path: Path
) -> None:
    commit(riverlog, group, topic, 4, 4)
    saved = tmp_path / "saved.json"
    saved.write_text(riverlog("group", "export", group).stdout)
    with member(riverlog, group, topic):
        for command in (
            ["seek", group, "--to", "latest"],
            ["delete", group, "--yes"],
            ["import", str(saved)],
        ):
            refused = riverlog("group", *command, code=1)
            assert "it has 1 member" in refused.stderr
    assert offsets(riverlog, group) == {0: 4, 1: 4}


def test_offsets_are_exported_and_imported(riverlog: CommandLine, group: str, topic: str) -> None:
    consumer = Consumer({"bootstrap.servers": riverlog.bootstrap, "group.id": group})
    noted = [TopicPartition(topic, 0, 4, metadata="a note"), TopicPartition(topic, 1, 6)]
    consumer.commit(offsets=noted, asynchronous=False)
    consumer.close()
    saved = riverlog("group", "export", group).stdout
    assert json.loads(saved)["groups"] == [
        {
            "group": group,
            "offsets": [
                {"topic": topic, "partition": 0, "offset": 4, "metadata": "a note"},
                {"topic": topic, "partition": 1, "offset": 6},
            ],
        }
    ]
    riverlog("group", "delete", group, "--yes")
    riverlog("group", "describe", group, code=4)
    tried = riverlog("group", "import", "--dry-run", stdin=saved)
    assert "would be set" in tried.stderr
    riverlog("group", "describe", group, code=4)
    riverlog("group", "import", stdin=saved)
    assert riverlog("group", "export", group).stdout == saved
    assert group in riverlog("group", "export", "--all").stdout


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 9, "groups": []}', '{"format": 1}'])
def test_import_refuses_what_export_did_not_print(riverlog: CommandLine, text: str) -> None:
    assert "error: -" in riverlog("group", "import", stdin=text, code=2).stderr


def test_delete_asks_first(riverlog: CommandLine, group: str, topic: str) -> None:
    commit(riverlog, group, topic, 1)
    asked = riverlog("group", "delete", group, code=2)
    assert "--yes" in asked.stderr
    deleted = riverlog.execute("group", "delete", group, "--yes")
    assert (deleted.code, deleted.stdout, deleted.stderr) == (0, "", f"deleted group {group}\n")


def test_wrong_usage_says_so(riverlog: CommandLine, group: str) -> None:
    assert "no position" in riverlog("group", "seek", group, "--to", "somewhere", code=2).stderr
    riverlog("group", "export", code=2)
    riverlog("group", "export", group, "--all", code=2)


def test_a_group_that_is_changing_is_called_so(riverlog: CommandLine, group: str, topic: str) -> None:
    """librdkafka has no word for the states of the consumer protocol in between."""
    host, _, port = riverlog.bootstrap.rpartition(":")
    with BrokerConnection(Address(host, int(port)), timeout_s=10, client_id="test") as connection:
        for name in ("a", "b"):
            beat = ConsumerGroupHeartbeatRequest(
                group_id=group,
                member_id=name,
                member_epoch=0,
                rebalance_timeout_ms=30_000,
                subscribed_topic_names=[topic],
                topic_partitions=[],
            )
            assert connection.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, beat).error_code == 0
    [listed] = riverlog("group", "list", group, "-o", "json").json
    [described] = riverlog("group", "describe", group, "-o", "json").json
    assert {listed["state"], described["state"]} <= {"assigning", "reconciling"}


def test_all_groups_can_be_described(riverlog: CommandLine, group: str, topic: str) -> None:
    commit(riverlog, group, topic, 1, 2)
    assert group in [each["group"] for each in riverlog("group", "describe", "--all", "-o", "json").json]
    assert "--all" in riverlog("group", "describe", code=2).stderr
    riverlog("group", "describe", group, "--all", code=2)


@pytest.mark.parametrize(
    ("by", "expected"), [("3", {0: 7, 1: 9}), ("-5", {0: 0, 1: 1}), ("99", {0: 10, 1: 10})]
)
def test_seek_shifts_by_a_number_of_records(
    riverlog: CommandLine, group: str, topic: str, by: str, expected: dict[int, int]
) -> None:
    commit(riverlog, group, topic, 4, 6)
    riverlog("group", "seek", group, f"--by={by}")
    assert offsets(riverlog, group) == expected
    riverlog("group", "seek", group, "--by", "1", "--to", "start", code=2)


def test_offsets_of_one_topic_are_deleted_and_the_group_stays(
    riverlog: CommandLine, group: str, topic: str
) -> None:
    other = riverlog.topic()
    commit(riverlog, group, topic, 4, 6)
    commit(riverlog, group, other, 0)
    deleted = riverlog("group", "delete", group, "--topic", topic, "--yes")
    assert deleted.stderr == f"deleted 2 offsets of group {group}\n"
    [found] = riverlog("group", "describe", group, "-o", "json").json
    assert {each["topic"] for each in found["partitions"]} == {other}


def test_offsets_that_members_read_are_not_deleted(riverlog: CommandLine, group: str, topic: str) -> None:
    commit(riverlog, group, topic, 4, 6)
    with member(riverlog, group, topic):
        refused = riverlog("group", "delete", group, "--topic", topic, "--yes", code=1)
    assert "GROUP_SUBSCRIBED_TO_TOPIC" in refused.stderr
    assert "stop them" in refused.stderr


@pytest.mark.parametrize("client", ["riverlog-cli", "orders-service-of-a-warehouse"])
def test_a_description_fits_80_columns(riverlog: CommandLine, group: str, topic: str, client: str) -> None:
    """The id of a member begins with that of its client."""
    with member(riverlog, group, topic, client_id=client) as consumer:
        shown = riverlog("group", "describe", group).stdout
        assert f"     1  {consumer.memberid()}\n        {client} on 127.0.0.1\n" in shown
    assert max(map(len, shown.splitlines())) <= 80, shown


def test_members_without_partitions_are_told_in_80_columns(riverlog: CommandLine, group: str) -> None:
    topic, client = riverlog.topic(), "orders-service-of-a-warehouse"
    settings = {"bootstrap.servers": riverlog.bootstrap, "group.id": group, "client.id": client}
    with member(riverlog, group, topic, client_id=client) as first:
        second = Consumer(settings)
        second.subscribe([topic])

        def described() -> str:
            first.poll(0.1)
            second.poll(0.1)
            return riverlog("group", "describe", group).stdout

        eventually(lambda: "\nmembers without partitions\n" in described(), "nobody is idle")
        shown = described()
        second.close()
    assert shown.count(f"        {client} on 127.0.0.1\n") == 2
    assert max(map(len, shown.splitlines())) <= 80, shown
