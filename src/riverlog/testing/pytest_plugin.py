"""Pytest fixtures for users' tests; `docs/testing.md` is the guide.

    def test_orders(riverlog_broker, riverlog_topic):
        producer = Producer({"bootstrap.servers": riverlog_broker.bootstrap_servers})
        producer.produce(riverlog_topic, b"hello")

Installed with the package and loaded by every pytest run on the machine, so the broker is imported only when
a test asks for a fixture. One broker serves the whole session; a test with the mark `riverlog`, or one that
moves the clock, gets a broker of its own under the same name.
"""

import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

if TYPE_CHECKING:
    from riverlog.testing.broker import Broker
    from riverlog.testing.cluster import Cluster
    from riverlog.testing.faults import Faults
    from riverlog.testing.settable_clock import SettableClock

_INI = "riverlog_settings"
_HAS_FAILED = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        _INI, "settings of the broker that tests share, one `name = value` on a line", "linelist", []
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "riverlog(config=None, **settings): riverlog_broker is the test's own, with these settings",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A parameter of function scope makes `riverlog_broker` anew for the one test that has it."""
    if "riverlog_broker" not in metafunc.fixturenames:
        return
    marks = list(metafunc.definition.iter_markers("riverlog"))
    if not marks and "riverlog_clock" not in metafunc.fixturenames:
        return
    settings: dict[str, object] = {}
    for mark in reversed(marks):  # The closest to the test has the last word.
        for config in (*mark.args, mark.kwargs):
            settings.update(config or {})
    metafunc.parametrize("riverlog_broker", [settings], indirect=True, scope="function", ids=["own broker"])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and report.when != "teardown":
        item.stash[_HAS_FAILED] = True
        for name, value in _given(item):
            report.sections.append((f"riverlog: {name}", _account_of(value)))
    return report


@pytest.fixture(scope="session")
def _riverlog_shared_broker(pytestconfig: pytest.Config) -> Iterator["Broker"]:
    from riverlog.node.adapters.system_clock import SystemClock
    from riverlog.testing.broker import Broker

    # A clock that nobody can move: other tests would lose their records.
    with Broker(_shared_settings(pytestconfig.getini(_INI)), clock=SystemClock()) as broker:
        yield broker


@pytest.fixture(scope="session")
def riverlog_broker(request: pytest.FixtureRequest) -> Iterator["Broker"]:
    """A broker for this session (with pytest-xdist: for this worker), on a free port.

    With `@pytest.mark.riverlog(...)`, or beside `riverlog_clock`, a broker of the test's own."""
    settings = getattr(request, "param", None)
    if settings is None:
        yield request.getfixturevalue("_riverlog_shared_broker")
        return
    from riverlog.testing.broker import Broker

    with Broker(**settings) as broker:
        yield broker


@pytest.fixture
def riverlog_cluster(request: pytest.FixtureRequest) -> Iterator["Cluster"]:
    """A cluster of the test's own: three brokers in this process, or what is asked for by an indirect
    parameter, `@pytest.mark.parametrize("riverlog_cluster", [{"brokers": 5}], indirect=True)`."""
    from riverlog.testing.cluster import Cluster

    with Cluster(**getattr(request, "param", {})) as cluster:
        yield cluster


@pytest.fixture
def riverlog_topic_factory(riverlog_broker: "Broker") -> Callable[..., str]:
    """Makes fresh topics: `riverlog_topic_factory("orders", partitions=3, cleanup_policy="compact")` gives
    the name, which begins with the one that was given. Settings as keywords, or in `config` by Kafka's names.
    """

    def make(
        name: str = "test",
        partitions: int = 1,
        config: Mapping[str, object] | None = None,
        **settings: object,
    ) -> str:
        named = {key.replace("_", "."): value for key, value in settings.items()}
        topic = f"{name}-{uuid4().hex[:12]}"
        riverlog_broker.create_topic(topic, partitions, {**(config or {}), **named})
        return topic

    return make


@pytest.fixture
def riverlog_topic(riverlog_topic_factory: Callable[..., str]) -> str:
    """The name of a fresh topic with one partition."""
    return riverlog_topic_factory()


@pytest.fixture
def riverlog_faults(riverlog_broker: "Broker", request: pytest.FixtureRequest) -> Iterator["Faults"]:
    """The faults of the broker, for this test: gone at its end, and each must have struck."""
    faults = riverlog_broker.faults
    with faults.noted() as made:
        yield faults
    for fault in made:
        fault.remove()
    if _HAS_FAILED in request.node.stash:
        return
    for fault in made:
        fault.check()
    unused = "\n".join(f"  {fault!r}" for fault in made if not fault.hits)
    if unused:
        pytest.fail(
            f"No request has met these faults:\n{unused}\n"
            "Was it another API, topic or client id, or did the test end before?",
            pytrace=False,
        )


@pytest.fixture
def riverlog_clock(riverlog_broker: "Broker") -> "SettableClock":
    """The clock of `riverlog_broker`, which is the test's own then: `riverlog_clock.advance(days=8)`."""
    return riverlog_broker.clock


def _shared_settings(lines: list[str]) -> dict[str, str]:
    settings: dict[str, str] = {}
    for line in lines:
        name, found, value = line.partition("=")
        if not found:
            raise pytest.UsageError(f"{_INI}: {line!r} is not of the form `name = value`.")
        settings[name.strip()] = value.strip()
    return settings


def _given(item: pytest.Item) -> Iterator[tuple[str, "Broker | Cluster"]]:
    """Whatever broker or cluster the test was given by a fixture."""
    broker, cluster = (sys.modules.get(f"riverlog.testing.{name}") for name in ("broker", "cluster"))
    seen: set[int] = set()
    for name, value in getattr(item, "funcargs", {}).items():
        is_one = (broker is not None and isinstance(value, broker.Broker)) or (
            cluster is not None and isinstance(value, cluster.Cluster)
        )
        if is_one and id(value) not in seen:
            seen.add(id(value))
            yield name, value


def _account_of(given: "Broker | Cluster") -> str:
    """Never raises: the test's own failure is what is to be told."""
    try:
        account = given.account()
        # That of a cluster has the address of each broker.
        return account if hasattr(given, "brokers") else f"{given.bootstrap_servers}\n{account}"
    except Exception as error:  # noqa: BLE001 - whatever keeps it from telling
        return f"The broker does not tell: {error}"
