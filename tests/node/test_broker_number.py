"""`broker.id=-1`: the cluster gives a number, and the data directory keeps it."""

import asyncio
from pathlib import Path

import pytest

from riverlog.model.config.parse import combine, from_mapping
from riverlog.model.config.settings import Settings
from riverlog.model.errors import ConfigError
from riverlog.node.adapters.threads import thread_executor
from riverlog.node.node import Node
from riverlog.node.processes.broker_number import next_number, with_broker_number
from riverlog.testing.simulated_store import SimulatedEnsemble


def settings(**given: object) -> Settings:
    named = {name.replace("_", "."): value for name, value in given.items()}
    return combine([from_mapping({"listeners": "PLAINTEXT://127.0.0.1:0", **named}, "test")])


def number_of(given: Settings) -> object:
    return asyncio.run(with_broker_number(given, thread_executor)).get("broker.id")


def test_numbers_are_given_once_also_when_an_answer_is_lost() -> None:
    async def main() -> None:
        ensemble = SimulatedEnsemble()
        first, second = ensemble.connect(), ensemble.connect()
        given = [await next_number(first), *await asyncio.gather(next_number(first), next_number(second))]
        ensemble.lost_answers = 1
        given.append(await next_number(second))
        assert sorted(given) == [1, 2, 3, 5]

    asyncio.run(main())


def test_a_new_broker_gets_a_number_above_the_reserved_ones_and_keeps_it(tmp_path: Path) -> None:
    given = {
        "riverlog.shared.metadata.dir": str(tmp_path / "shared"),
        "broker.id": -1,
        "reserved.broker.max.id": 50,
    }
    assert [number_of(settings(**given, log_dirs=str(tmp_path / name))) for name in "ab"] == [51, 52]

    async def main() -> None:
        numbered = await with_broker_number(settings(**given, log_dirs=str(tmp_path / "c")), thread_executor)
        node = Node(numbered)
        await node.start()
        assert list(node.image.brokers) == [53]
        await node.stop()

    asyncio.run(main())
    assert number_of(settings(**given, log_dirs=str(tmp_path / "c"))) == 53


def test_without_a_cluster_nobody_gives_a_number(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"needs zookeeper\.connect"):
        number_of(settings(broker_id=-1, log_dirs=str(tmp_path / "a")))


def test_a_number_that_was_chosen_stays(tmp_path: Path) -> None:
    assert number_of(settings(broker_id=7, log_dirs=str(tmp_path / "a"))) == 7
    assert number_of(settings(node_id=7, broker_id=-1)) == -1
