"""`riverlog metadata export` on the directory of a real node."""

import json
from pathlib import Path

from riverlog.testing import Broker
from tests.cli.running import CommandLine


def test_an_export_holds_topics_ids_and_settings(tmp_path: Path) -> None:
    data, target = tmp_path / "data", tmp_path / "metadata.json"
    with Broker(data_dir=str(data)) as broker:
        riverlog = CommandLine(broker.bootstrap_servers)
        topic = riverlog.topic("-p", "2", "-c", "retention.ms=12345")
        busy = riverlog("metadata", "export", "-d", str(data), code=1)

    document = riverlog("metadata", "export", "--data-dir", str(data)).json
    riverlog("metadata", "export", "--data-dir", str(data), "--file", str(target))

    assert "in use by a running broker" in busy.stderr
    assert json.loads(target.read_text()) == document
    assert f"/brokers/topics/{topic}" in document["nodes"]
    assert "12345" in document["nodes"][f"/config/topics/{topic}"]
    with Broker(data_dir=str(data)) as again:
        assert CommandLine(again.bootstrap_servers)("topic", "list", topic, "-o", "json").json


def test_a_directory_without_metadata_is_not_found(tmp_path: Path) -> None:
    riverlog = CommandLine("127.0.0.1:1")

    assert "holds no metadata" in riverlog("metadata", "export", "-d", str(tmp_path), code=4).stderr
