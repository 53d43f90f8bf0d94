"""The message tables in the sources are what the generator writes, and there is none that nothing uses."""

import re
from pathlib import Path

import pytest

from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.api_versions import ApiVersionsRequest
from scripts import generate_messages
from scripts.generate_messages import MESSAGES
from tests.broker.raw_client import RawClient

SOURCES = Path(__file__).parents[2] / "src"
IMPORTED = re.compile(r"riverlog\.wire\.messages(?:\.| import )(\w+)")


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tables as they are, for a test to spoil."""
    for path in generate_messages.TARGET.glob("*.py"):
        (tmp_path / path.name).write_text(path.read_text())
    monkeypatch.setattr(generate_messages, "TARGET", tmp_path)
    return tmp_path


def test_the_tables_in_the_sources_are_what_the_generator_writes() -> None:
    assert generate_messages.main(["--check"]) == 0


def test_a_table_that_was_edited_added_or_removed_is_named_and_written_anew(
    copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fetch = (copy / "fetch.py").read_text()
    (copy / "fetch.py").write_text(fetch.replace("(4, 18)", "(4, 17)", 1))
    (copy / "share_fetch.py").write_text("")
    (copy / "produce.py").unlink()
    assert generate_messages.main(["--check"]) == 1
    assert [line.split(":")[0] for line in capsys.readouterr().err.splitlines()] == [
        "wire/messages/fetch.py is not what the generator writes",
        "wire/messages/produce.py is missing",
        "wire/messages/share_fetch.py is not in the list of messages",
    ]
    assert generate_messages.main([]) == 0
    assert generate_messages.modules(copy) == generate_messages.modules(
        SOURCES / "riverlog" / "wire" / "messages"
    )
    assert (copy / "__init__.py").exists()


def test_the_list_holds_what_is_served_or_used_otherwise_and_no_more() -> None:
    with Broker() as broker, RawClient(broker) as client:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
        offered = client.ask(ApiKey.API_VERSIONS, 4, request).api_keys
    served = {ApiKey(each.api_key).name.lower() for each in offered}
    used = {name for path in SOURCES.rglob("*.py") for name in IMPORTED.findall(path.read_text())}
    assert sorted(served | used) == [*MESSAGES]
