"""The generator of documentation tables."""

from pathlib import Path

import pytest

from riverlog.model.config.definitions import BROKER_KEYS, TOPIC_KEYS
from scripts import generate_docs


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(generate_docs, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    markers = f"{generate_docs.API_TABLE_BEGIN}\nold\n{generate_docs.API_TABLE_END}"
    (tmp_path / "README.md").write_text(f"# before\n{markers}\nafter\n")
    return tmp_path


def test_tables_are_written_once_and_then_are_up_to_date(root: Path) -> None:
    assert generate_docs.main(["--check"]) == 1
    assert generate_docs.main([]) == 0
    assert generate_docs.main(["--check"]) == 0
    readme = (root / "README.md").read_text()
    assert readme.startswith("# before\n")
    assert readme.endswith("\nafter\n")
    assert "| Produce 0-13 | Fetch 4-18 |" in readme
    assert "old" not in readme


def test_a_changed_file_is_out_of_date_and_is_named(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    generate_docs.main([])
    path = root / "docs" / "configuration.md"
    path.write_text(path.read_text().replace("**works**", "works", 1))
    assert generate_docs.main(["--check"]) == 1
    assert "docs/configuration.md is out of date" in capsys.readouterr().err


def test_every_key_has_its_row() -> None:
    text = generate_docs.configuration()
    for name in (*BROKER_KEYS, *TOPIC_KEYS):
        assert f"| `{name}` |" in text


def test_every_command_has_its_section() -> None:
    text = generate_docs.command_line()
    for name in ("serve", "topic create", "produce", "consume", "config show"):
        assert f"`riverlog {name}`" in text
