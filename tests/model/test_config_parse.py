"""Settings from files, the environment and flags."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riverlog.model.config.definitions import BROKER_KEYS
from riverlog.model.config.parse import combine, from_mapping, load
from riverlog.model.config.properties import Property, read_properties
from riverlog.model.errors import ConfigError

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", [("a", "b", 1)]),
        ("  a : b  ", [("a", "b  ", 1)]),
        ("a b c", [("a", "b c", 1)]),
        ("a", [("a", "", 1)]),
        ("# x=y\n! x=y\n\n  \na=b", [("a", "b", 5)]),
        ("a=b,\\\n   c\nd=e", [("a", "b,c", 1), ("d", "e", 3)]),
        ("a=b\\\\\nc=d", [("a", "b\\", 1), ("c", "d", 2)]),
        ("a=\\u0041\\t\\=\\q", [("a", "A\t=q", 1)]),
        ("a\\ b\\==c", [("a b=", "c", 1)]),
        ("a=b\r\nc=d\re=f", [("a", "b", 1), ("c", "d", 2), ("e", "f", 3)]),
        ("a=b\\\n# not a comment", [("a", "b# not a comment", 1)]),
        ("a==b", [("a", "=b", 1)]),
        ("a=b\\", [("a", "b", 1)]),
    ],
)
def test_a_properties_file_is_read_as_java_reads_it(text: str, expected: list[tuple[str, str, int]]) -> None:
    assert read_properties(text, "f") == [Property(*each) for each in expected]


def test_a_broken_escape_names_its_line() -> None:
    with pytest.raises(ConfigError, match=r"f line 2: .*four hexadecimal digits"):
        read_properties("a=b\nc=\\u00zz", "f")


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_as_a_config_error(text: str) -> None:
    try:
        read_properties(text, "f")
    except ConfigError:
        assert "\\u" in text


@given(st.text(st.characters(codec="utf-8"), min_size=1), st.text(st.characters(codec="utf-8")))
def test_escaped_pairs_come_back_as_they_were(name: str, value: str) -> None:
    def escaped(text: str) -> str:
        units = text.encode("utf-16-be")
        return "".join(f"\\u{units[i] << 8 | units[i + 1]:04x}" for i in range(0, len(units), 2))

    (pair,) = read_properties(f"{escaped(name)}={escaped(value)}", "f")
    whole = (pair.name + "\0" + pair.value).encode("utf-16-be", "surrogatepass").decode("utf-16-be")
    assert whole == name + "\0" + value


def test_a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default() -> None:
    file = "num.partitions=2\nlog.segment.bytes=2000000\nfetch.max.bytes=3000\n"
    environment = {"RIVERLOG_NUM_PARTITIONS": "3", "RIVERLOG_LOG_SEGMENT_BYTES": "3000000", "HOME": "/"}
    settings = load(file_text=file, environment=environment, flags=["num.partitions=4"])
    assert settings.get("num.partitions") == 4
    assert settings.get("log.segment.bytes") == 3000000
    assert settings.get("fetch.max.bytes") == 3000
    assert settings.get("message.max.bytes") == 1048588
    assert settings.origin("num.partitions") == "--set num.partitions"
    assert settings.origin("log.segment.bytes") == "environment variable RIVERLOG_LOG_SEGMENT_BYTES"
    assert settings.origin("fetch.max.bytes") == "server.properties line 3"
    assert settings.origin("message.max.bytes") == "default"


def test_every_key_has_an_environment_variable() -> None:
    for name, key in BROKER_KEYS.items():
        if key.default:
            variable = "RIVERLOG_" + name.upper().replace(".", "_")
            assert name in load(environment={variable: key.default}).given


def test_our_own_keys_need_their_prefix_only_once_in_the_environment() -> None:
    assert load(environment={"RIVERLOG_ACKS_FSYNC": "true"}).get("riverlog.acks.fsync") is True
    assert load(environment={"RIVERLOG_RIVERLOG_ACKS_FSYNC": "true"}).get("riverlog.acks.fsync") is True


def test_a_variable_of_the_command_line_is_no_setting() -> None:
    commands = "".join(path.read_text() for path in (ROOT / "src/riverlog/cli").rglob("*.py"))
    tools = set(re.findall(r'envvar="(RIVERLOG_\w+)"', commands))
    assert {"RIVERLOG_BOOTSTRAP", "RIVERLOG_SPARK_MASTER"} <= tools
    tools |= {"RIVERLOG_SPARK_CONNECTOR_JARS", "RIVERLOG_KAFKA_JARS", "RIVERLOG_TEST_BOOTSTRAP"}
    assert load(environment=dict.fromkeys(tools, "a:1")).given == {}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"flags": ["nun.partitions=1"]}, "there is no setting nun.partitions; did you mean num.partitions?"),
        (
            {"file_text": "\nlog.segment.byte=1", "file_name": "my.properties"},
            "my.properties line 2: there is no setting log.segment.byte; did you mean log.segment.bytes?",
        ),
        (
            {"environment": {"RIVERLOG_NUN_PARTITIONS": "1"}},
            "environment variable RIVERLOG_NUN_PARTITIONS: there is no such setting; "
            "did you mean RIVERLOG_NUM_PARTITIONS?",
        ),
        (
            {"flags": ["retention.ms=1"]},
            "retention.ms is a setting of topics, not of the broker; for all topics set log.retention.ms",
        ),
        ({"flags": ["num.partitions"]}, "write it as key=value"),
        ({"flags": ["num.partitions=0"]}, "Give num.partitions a number of at least 1; the default is 1."),
        ({"flags": ["log.segment.bytes=1"]}, "a number of at least 1048576; the default is 1073741824."),
        ({"flags": ["compression.type=x"]}, "one of uncompressed, zstd, lz4, snappy, gzip, producer"),
        ({"flags": ["log.retention.ms=0"]}, "log.retention.ms must be unlimited (-1) or"),
        ({"flags": ["listener.name.foo.bar=0"]}, "does not end in a key that can be set for one listener"),
    ],
)
def test_a_mistake_is_named_with_its_place_and_its_remedy(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(**arguments)  # type: ignore[arg-type]
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("flag", "warning"),
    [
        ("num.io.threads=8", "is a setting of Apache Kafka that has no effect here"),
        ("num.replica.fetchers=8", "is a setting of Apache Kafka that has no effect here"),
        ("max.connection.creation.rate=8", "has no effect yet"),
        ("process.roles=broker", "is a setting of Apache Kafka that has no effect here"),
        ("zookeeper.set.acl=true", "ways to ZooKeeper"),
        ("log.message.format.version=2.8", "is not needed"),
        ("rsm.config.bucket=x", "Java plugin"),
        ("listener.name.a.plain.sasl.jaas.config=x", "has no effect yet"),
    ],
)
def test_a_real_key_that_does_nothing_is_taken_with_a_warning(flag: str, warning: str) -> None:
    (found,) = load(flags=[flag]).warnings
    assert warning in found


def test_a_key_that_works_gives_no_warning() -> None:
    assert load(flags=["num.partitions=3", "log.retention.hours=1"]).warnings == ()


@pytest.mark.parametrize(
    "name",
    [
        "rack",
        "org.apache.kafka.common.replica.RackAwareReplicaSelector",
        "org.apache.kafka.common.replica.LeaderSelector",
        "",
    ],
)
def test_a_selector_of_replicas_is_taken_by_its_name(name: str) -> None:
    assert combine([from_mapping({"replica.selector.class": name}, "test")]).warnings == ()


def test_a_selector_of_replicas_that_is_not_here_is_refused_with_the_one_that_is() -> None:
    with pytest.raises(ConfigError, match=r"there is no com\.example\.Mine here\. Give it rack"):
        combine([from_mapping({"replica.selector.class": "com.example.Mine"}, "test")])


def test_a_password_is_hidden_from_repr_warnings_and_errors() -> None:
    settings = load(flags=["ssl.key.password=hunter2", "listener.name.x.ssl.key.password=hunter2"])
    assert "hunter2" not in repr(settings)
    assert "hunter2" not in repr(settings.get("ssl.key.password"))
    assert "hunter2" not in str(settings.get("ssl.key.password"))
    assert "hunter2" not in " ".join(settings.warnings)


def test_python_values_are_settings_too() -> None:
    settings = combine(
        [from_mapping({"num.partitions": 3, "riverlog.acks.fsync": True, "log.dirs": ["a", "b"]})]
    )
    assert settings.get("num.partitions") == 3
    assert settings.get("riverlog.acks.fsync") is True
    assert settings.get("log.dirs") == ("a", "b")
    with pytest.raises(ConfigError, match=r"config\['num\.partitons'\]"):
        combine([from_mapping({"num.partitons": 3})])
