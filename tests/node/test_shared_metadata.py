"""Brokers of one host that share their metadata are one cluster (`riverlog.shared.metadata.dir`)."""

import asyncio
from pathlib import Path

import pytest

from riverlog.model.config.parse import combine, from_mapping
from riverlog.model.errors import FormatError
from riverlog.node.node import Node
from tests.waiting import eventually


def node(directory: Path, node_id: int, metadata: str = "metadata") -> Node:
    given = {
        "node.id": str(node_id),
        "log.dirs": f"{directory}/broker-{node_id}",
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "riverlog.shared.metadata.dir": f"{directory}/{metadata}",
    }
    return Node(combine([from_mapping(given, "test")]))


async def until_brokers_are(node: Node, expected: set[int]) -> None:
    await asyncio.to_thread(eventually, lambda: set(node.image.brokers) == expected)


def test_new_directories_join_the_cluster_of_the_shared_store(tmp_path: Path) -> None:
    async def main() -> None:
        nodes = [node(tmp_path, node_id) for node_id in (1, 2, 3)]
        await asyncio.gather(*(each.start() for each in nodes))
        assert len({each.cluster_id for each in nodes}) == 1
        for each in nodes:
            await until_brokers_are(each, {1, 2, 3})
        await nodes[1].stop()
        for each in (nodes[0], nodes[2]):
            await until_brokers_are(each, {1, 3})
        again = node(tmp_path, 2)
        await again.start()
        await until_brokers_are(nodes[0], {1, 2, 3})
        for each in (nodes[0], again, nodes[2]):
            await each.stop()

    asyncio.run(main())


def test_a_broker_with_logs_does_not_join_another_cluster(tmp_path: Path) -> None:
    async def main() -> None:
        first = node(tmp_path, 1)
        await first.start()
        await first.stop()
        (tmp_path / "broker-1" / "orders-0").mkdir()
        with pytest.raises(FormatError, match="belongs to cluster"):
            await node(tmp_path, 1, metadata="another").start()

    asyncio.run(main())
