"""The worked examples, run by Spark's own command against a broker; what their topics hold is exact."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pyspark
import pytest

from riverlog.spark.spark_home import light_home
from riverlog.testing import Broker
from tests.spark.topics import Sent, contents, send

EXAMPLES = Path(__file__).parents[2] / "examples"
SPARK_PIPELINES = Path(pyspark.__file__).parent / "bin" / "spark-pipelines"
RUN_TIMEOUT_S = 240


class Project:
    """A copy of an example whose checkpoints lie in the test's own directory."""

    def __init__(self, name: str, directory: Path, broker: Broker, spark: str) -> None:
        self._directory = directory / name
        self._broker = broker
        self._spark = spark
        shutil.copytree(EXAMPLES / name, self._directory, ignore=shutil.ignore_patterns("__pycache__"))
        spec = self._directory / "spark-pipeline.yml"
        text = spec.read_text()
        assert "file:///tmp/riverlog-examples" in text
        spec.write_text(text.replace("file:///tmp/riverlog-examples", (directory / "storage").as_uri()))

    def run(self) -> None:
        environment = {
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_HOME": str(light_home(self._directory.parent / "home")),
            "RIVERLOG_BOOTSTRAP": self._broker.bootstrap_servers,
        }
        done = subprocess.run(
            [str(SPARK_PIPELINES), "--remote", self._spark, "run"],
            cwd=self._directory,
            env=environment,
            capture_output=True,
            text=True,
            timeout=RUN_TIMEOUT_S,
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


def document(**fields: object) -> bytes:
    return json.dumps(fields).encode()


def documents(values: Iterable[bytes | None]) -> list[dict[str, object]]:
    """Sorted, whatever the order of their fields."""
    return in_order(json.loads(value) for value in values if value is not None)


def in_order(documents: Iterable[dict[str, object]]) -> list[dict[str, object]]:
    return sorted(documents, key=lambda each: json.dumps(each, sort_keys=True))


def test_orders_go_to_the_topic_of_their_region_or_to_the_dead_letters(
    broker: Broker, tmp_path: Path, spark_connect: str
) -> None:
    for topic, partitions in {"orders": 3, "orders.eu": 2, "orders.us": 1, "orders.elsewhere": 1}.items():
        broker.create_topic(topic, partitions)
    broker.create_topic("orders.dead")
    regions = ["eu-north", "us-west", "eu-south", "ap-east"]
    good = [
        Sent(f"c{n}".encode(), document(id=n, region=regions[n % 4], cents=n), [("n", str(n).encode())])
        for n in range(40)
    ]
    broken = [Sent(b"c1", b"{", []), Sent(b"c2", document(id=1, region="eu-x"), [("n", b"?")])]
    send(broker, "orders", [*good, *broken])

    Project("orders_by_region", tmp_path, broker, spark_connect).run()

    for topic, wanted in {"orders.eu": "eu-", "orders.us": "us-", "orders.elsewhere": "ap-"}.items():
        expected = [each for each in good if wanted.encode() in (each.value or b"")]
        assert sorted(contents(broker, topic)) == sorted(expected)
    dead = contents(broker, "orders.dead")
    assert sorted((each.key, each.value) for each in dead) == [(each.key, each.value) for each in broken]
    reasons = {dict(each.headers)["dead-letter.error"] for each in dead}
    assert reasons == {b"the value is not well-formed JSON", b"the field cents is missing or null"}


def test_late_payments_count_until_their_minute_is_over(
    broker: Broker, tmp_path: Path, spark_connect: str
) -> None:
    broker.create_topic("payments", 1)
    broker.create_topic("revenue", 1)
    project = Project("windowed_metrics", tmp_path, broker, spark_connect)

    def pay(*payments: tuple[str, str, int]) -> None:
        values = (document(region=r, at=f"2026-03-01T{at}Z", cents=c) for at, r, c in payments)
        send(broker, "payments", [Sent(None, value, []) for value in values])

    pay(("12:00:10", "eu", 5), ("12:01:30", "eu", 7), ("12:00:50", "eu", 1), ("12:00:59", "us", 2))
    pay(("12:03:30", "us", 9))
    project.run()
    first = {"minute": "2026-03-01T12:00:00.000Z"}
    expected = [
        {**first, "region": "eu", "payments": 2, "cents": 6},
        {**first, "region": "us", "payments": 1, "cents": 2},
    ]
    assert documents(each.value for each in contents(broker, "revenue")) == in_order(expected)

    # The first is too late: its minute is over. The second is late, but in time.
    pay(("12:00:20", "eu", 1000), ("12:01:59", "eu", 3), ("12:04:10", "eu", 1))
    project.run()
    expected.append({"minute": "2026-03-01T12:01:00.000Z", "region": "eu", "payments": 2, "cents": 10})
    assert documents(each.value for each in contents(broker, "revenue")) == in_order(expected)


def test_orders_meet_the_latest_word_on_their_customer(
    broker: Broker, tmp_path: Path, spark_connect: str
) -> None:
    for topic in ("orders", "orders.enriched"):
        broker.create_topic(topic, 2)
    broker.create_topic("customers", 2, {"cleanup.policy": "compact"})
    known = {b"ada": "Ada", b"bob": "Bob", b"eve": "Eve"}
    send(broker, "customers", [Sent(key, document(name="old", tier="x"), []) for key in known])
    send(broker, "customers", [Sent(key, document(name=name), []) for key, name in known.items()])
    send(broker, "customers", [Sent(b"eve", None, [])])
    orders = [document(id=n, customer=c, cents=n) for n, c in enumerate(["ada", "bob", "eve", "zoe", "ada"])]
    send(broker, "orders", [Sent(None, value, []) for value in orders])

    Project("orders_with_customers", tmp_path, broker, spark_connect).run()

    got = documents(each.value for each in contents(broker, "orders.enriched"))
    assert sorted(got, key=lambda order: str(order["id"])) == [
        {"id": 0, "customer": "ada", "cents": 0, "name": "Ada"},
        {"id": 1, "customer": "bob", "cents": 1, "name": "Bob"},
        {"id": 2, "customer": "eve", "cents": 2},
        {"id": 3, "customer": "zoe", "cents": 3},
        {"id": 4, "customer": "ada", "cents": 4, "name": "Ada"},
    ]


@pytest.fixture
def broker() -> Iterable[Broker]:
    """One for each example: they use the same topic names."""
    with Broker(log_retention_ms=-1) as running:
        yield running
