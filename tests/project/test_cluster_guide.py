"""What the guide to clusters shows of tests is what happens."""

import re
import subprocess
import sys
from pathlib import Path

from riverlog.testing import Cluster
from tests.cli.running import CommandLine
from tests.cli.seen import is_without, until_all_see

GUIDE = Path(__file__).parents[2] / "docs" / "cluster.md"


def test_the_test_of_the_guide_passes_with_nothing_but_the_package(tmp_path: Path) -> None:
    [example] = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    (tmp_path / "test_guide.py").write_text(example)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "1 passed" in done.stdout, done.stdout


def test_a_broker_that_is_away_is_seen_as_the_guide_shows() -> None:
    guide = GUIDE.read_text()
    [create] = re.findall(r"^riverlog (topic create orders .* -r 3 .*)$", guide, re.MULTILINE)
    [shown] = re.findall(r"^\$ riverlog topic describe orders\n(.*?)```", guide, re.MULTILINE | re.DOTALL)
    with Cluster(brokers=3) as cluster:
        CommandLine(cluster.bootstrap_servers)(*create.split())
        for partition in range(3):
            cluster.produce("orders", *(["x" * 40] * 10), partition=partition)
        cluster.kill(3)
        riverlog = CommandLine(cluster.bootstrap_servers)

        def described() -> list[list[str]]:
            """Without the id, sizes and settings."""
            lines = riverlog("topic", "describe", "orders").stdout.split("\n\n")[0].splitlines()
            return [line.split() for line in lines]

        until_all_see(cluster, is_without("orders", 3))
        assert described()[-1] == shown.splitlines()[-1].split()
        titles, *rows = described()[1:-1]
        expected_titles, *expected = [line.split() for line in shown.splitlines()[1:-1]]
        assert titles == expected_titles
        for row, like in zip(rows, expected, strict=True):
            told, guided = (dict(zip(titles, each, strict=False)) for each in (row, like))
            assert sorted(told["REPLICAS"]) == sorted(guided["REPLICAS"])
            assert sorted(told["ISR"]) == sorted(guided["ISR"])
            assert told["LAG"].split(",")[told["REPLICAS"].split(",").index("3")] == "-"
            assert sorted(told["LAG"]) == sorted(guided["LAG"])
            assert [told[name] for name in ("PARTITION", "START", "END", "RECORDS")] == [
                guided[name] for name in ("PARTITION", "START", "END", "RECORDS")
            ]
