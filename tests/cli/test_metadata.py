"""`riverlog metadata export` and `import` on the directories of real nodes."""

import json
import shutil
from pathlib import Path

import pytest

from riverlog.metadata.stores.embedded_store import FILE_NAME
from riverlog.model.errors import FormatError
from riverlog.testing import Broker
from tests.cli.running import CommandLine


def test_an_export_holds_topics_ids_and_settings(tmp_path: Path) -> None:
    data, target = tmp_path / "data", tmp_path / "metadata.json"
    with Broker(data_dir=str(data)) as broker:
        riverlog = CommandLine(broker.bootstrap_servers)
        topic = riverlog.topic("--partitions", "2", "-s", "retention.ms=12345")
        busy = riverlog("metadata", "export", "-d", str(data), code=1)

    document = riverlog("metadata", "export", "--data-dir", str(data)).json
    riverlog("metadata", "export", "--data-dir", str(data), "--file", str(target))

    assert "in use by a running broker" in busy.stderr
    assert json.loads(target.read_text()) == document
    assert f"/brokers/topics/{topic}" in document["nodes"]
    assert "12345" in document["nodes"][f"/config/topics/{topic}"]
    with Broker(data_dir=str(data)) as again:
        assert CommandLine(again.bootstrap_servers)("topic", "list", topic, "-o", "json").json


def test_what_was_exported_is_imported_where_metadata_was_lost(tmp_path: Path) -> None:
    data, saved = tmp_path / "data", tmp_path / "metadata.json"
    with Broker(data_dir=str(data)) as broker:
        riverlog = CommandLine(broker.bootstrap_servers)
        topic = riverlog.topic("--partitions", "2", "-s", "retention.ms=12345")
        riverlog.produce(topic, "kept")
    riverlog("metadata", "export", "-d", str(data), "--file", str(saved))
    (data / FILE_NAME).unlink()

    with pytest.raises(FormatError, match="riverlog metadata import"):
        Broker(data_dir=str(data)).start()
    outcome = riverlog("metadata", "import", str(saved), "--data-dir", str(data))

    assert "nodes written" in outcome.stderr
    assert riverlog("metadata", "export", "-d", str(data)).json == json.loads(saved.read_text())
    with Broker(data_dir=str(data)) as again:
        riverlog = CommandLine(again.bootstrap_servers)
        assert riverlog.consume(topic).stdout == "kept\n"
        [described] = riverlog("topic", "describe", topic, "-o", "json").json
        assert {"key": "retention.ms", "value": "12345", "source": "dynamic topic"} in described["configs"]


def test_an_import_begins_a_new_directory(tmp_path: Path) -> None:
    with Broker(data_dir=str(tmp_path / "old")) as broker:
        riverlog = CommandLine(broker.bootstrap_servers)
        topic = riverlog.topic("--partitions", "3")
    exported = riverlog("metadata", "export", "-d", str(tmp_path / "old")).stdout

    riverlog("metadata", "import", "-d", str(tmp_path / "new"), stdin=exported)

    assert riverlog("metadata", "export", "-d", str(tmp_path / "new")).stdout == exported
    with Broker(data_dir=str(tmp_path / "new")) as again:
        riverlog = CommandLine(again.bootstrap_servers)
        assert riverlog("topic", "list", topic, "-o", "json").json[0]["partitions"] == 3


def test_an_import_over_metadata_or_into_logs_of_another_cluster_is_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        with Broker(data_dir=str(tmp_path / name)) as broker:
            riverlog = CommandLine(broker.bootstrap_servers)
            riverlog.produce(riverlog.topic(), "a record")
    exported = riverlog("metadata", "export", "-d", str(tmp_path / "one")).stdout

    over = riverlog("metadata", "import", "-d", str(tmp_path / "one"), stdin=exported, code=1)
    (tmp_path / "two" / FILE_NAME).unlink()
    elsewhere = riverlog("metadata", "import", "-d", str(tmp_path / "two"), stdin=exported, code=1)

    assert "belongs to a cluster already" in over.stderr
    assert "the export to cluster" in elsewhere.stderr
    assert not (tmp_path / "two" / FILE_NAME).exists()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1, "nodes": {"/a": 1}}', '{"nodes": {}}'])
def test_what_is_no_export_is_refused(tmp_path: Path, text: str) -> None:
    outcome = CommandLine("127.0.0.1:1")("metadata", "import", "-d", str(tmp_path / "d"), stdin=text, code=2)

    assert "is not what `riverlog metadata export` prints" in outcome.stderr
    assert not (tmp_path / "d").exists()


def test_an_export_leaves_no_trace_in_the_directory(tmp_path: Path) -> None:
    """So that it works on a mount that cannot be written; as root, the file system allows everything else."""
    data = tmp_path / "data"
    with Broker(data_dir=str(data)) as broker:
        riverlog = CommandLine(broker.bootstrap_servers)
        topic = riverlog.topic()
    before = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in data.glob("riverlog*")}

    document = riverlog("metadata", "export", "-d", str(data)).json

    assert f"/brokers/topics/{topic}" in document["nodes"]
    assert before == {
        path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in data.glob("riverlog*")
    }


def test_a_directory_without_metadata_is_not_found(tmp_path: Path) -> None:
    riverlog = CommandLine("127.0.0.1:1")

    assert "holds no metadata" in riverlog("metadata", "export", "-d", str(tmp_path), code=4).stderr


def test_a_directory_that_has_lost_its_metadata_is_adopted_from_its_logs(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Broker(data_dir=str(data)) as broker:
        riverlog = CommandLine(broker.bootstrap_servers)
        topic = riverlog.topic("--partitions", "2")
        # A partition that was never written to has no files.
        riverlog.produce(topic, "kept", options=("--partition", "0"))
        riverlog.produce(topic, "as well", options=("--partition", "1"))
        [described] = riverlog("topic", "describe", topic, "-o", "json").json
        riverlog.consume(topic, "--group", "g")
    has_metadata = riverlog("metadata", "adopt", "-d", str(data), code=1)
    (data / FILE_NAME).unlink()

    listed = riverlog("metadata", "adopt", "-d", str(data), "--dry-run", "-o", "json")
    assert not (data / FILE_NAME).exists()
    riverlog("metadata", "adopt", "-d", str(data))

    assert "has metadata" in has_metadata.stderr
    assert "nothing was written" in listed.stderr
    rows = {row["topic"]: row for row in listed.json}
    assert rows[topic]["topic_id"] == described["topic_id"]
    assert rows[topic]["partitions"] == 2
    with Broker(data_dir=str(data)) as again:
        riverlog = CommandLine(again.bootstrap_servers)
        assert sorted(riverlog.consume(topic).stdout.split("\n")) == ["", "as well", "kept"]
        riverlog.produce(topic, "one more")
        [adopted] = riverlog("topic", "describe", topic, "-o", "json").json
        assert adopted["topic_id"] == described["topic_id"]
        assert {"key": "retention.ms", "value": "-1", "source": "dynamic topic"} in adopted["configs"]


def test_a_directory_without_meta_properties_is_not_adopted(tmp_path: Path) -> None:
    outcome = CommandLine("")("metadata", "adopt", "-d", str(tmp_path), code=4)
    assert "no meta.properties" in outcome.stderr


def test_a_directory_of_apache_kafka_is_adopted_with_its_topic_id_and_records(tmp_path: Path) -> None:
    data, fixtures = tmp_path / "data", Path(__file__).parents[1] / "storage" / "fixtures"
    shutil.copytree(fixtures / "kafka-clean", data / "orders-0")
    shutil.copy(fixtures / "kafka-meta.properties", data / "meta.properties")
    with pytest.raises(FormatError, match="riverlog metadata adopt"):
        Broker(data_dir=str(data)).start()

    [row] = CommandLine("")("metadata", "adopt", "-d", str(data), "-o", "json").json

    assert (row["topic"], row["id"], row["partitions"]) == ("orders", "found", 1)
    with Broker(data_dir=str(data)) as broker:
        riverlog = CommandLine(broker.bootstrap_servers)
        before = len(riverlog.consume("orders").stdout.splitlines())
        assert before > 100
        riverlog.produce("orders", "one more")
        assert len(riverlog.consume("orders").stdout.splitlines()) == before + 1
