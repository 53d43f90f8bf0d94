"""Cluster id, producer ids, export, and which logs are strays."""

import asyncio
import json
from uuid import UUID

import pytest

from riverlog.controller.decisions.topics import NewTopic
from riverlog.metadata import cluster, export, layout
from riverlog.metadata.producer_ids import BLOCK_SIZE, ProducerIds
from riverlog.metadata.strays import stray_logs
from riverlog.model.errors import FormatError
from riverlog.model.ids import NodeId, TopicId, TopicPartition
from riverlog.model.metadata_store import NodeExistsError
from riverlog.testing.simulated_store import SimulatedEnsemble
from tests.metadata.cluster_parts import NODE, running
from tests.virtual_time import run_virtually


def test_a_new_store_gets_the_fresh_id_and_keeps_it() -> None:
    async def main() -> None:
        store = SimulatedEnsemble().connect()
        first = await cluster.prepare(store, remembered=None, fresh_id=UUID(int=1))
        assert first == "AAAAAAAAAAAAAAAAAAAAAQ"
        assert await cluster.prepare(store, remembered=None, fresh_id=UUID(int=2)) == first
        assert await cluster.prepare(store, remembered=first, fresh_id=UUID(int=2)) == first

    asyncio.run(main())


def test_a_directory_whose_metadata_is_lost_or_anothers_is_refused() -> None:
    async def main() -> None:
        store = SimulatedEnsemble().connect()
        with pytest.raises(FormatError, match="metadata is empty"):
            await cluster.prepare(store, remembered="x", fresh_id=UUID(int=1))
        assert await store.children("/") == []
        await cluster.prepare(store, remembered=None, fresh_id=UUID(int=1))
        with pytest.raises(FormatError, match="belongs to cluster x"):
            await cluster.prepare(store, remembered="x", fresh_id=UUID(int=1))

    asyncio.run(main())


def test_two_nodes_that_prepare_at_once_agree_on_one_cluster_id() -> None:
    async def main() -> None:
        ensemble = SimulatedEnsemble()
        ids = await asyncio.gather(
            *(
                cluster.prepare(ensemble.connect(), remembered=None, fresh_id=UUID(int=number))
                for number in range(1, 5)
            )
        )
        assert len(set(ids)) == 1

    asyncio.run(main())


def test_producer_ids_are_never_given_twice_by_brokers_or_after_restarts() -> None:
    async def main() -> None:
        ensemble = SimulatedEnsemble()
        first = ProducerIds(ensemble.connect(), NodeId(1))
        second = ProducerIds(ensemble.connect(), NodeId(2))
        given = await asyncio.gather(
            *(ids.next_producer_id() for ids in (first, second) for _ in range(BLOCK_SIZE + 5))
        )
        after_restart = ProducerIds(ensemble.connect(), NodeId(1))
        given.append(await after_restart.next_producer_id())
        assert len(set(given)) == len(given)
        assert min(given) == 0
        block = await ensemble.connect().get(layout.PRODUCER_ID_BLOCK)
        assert block is not None
        assert json.loads(block.data) == {
            "version": 1,
            "broker": 1,
            "block_start": "4000",
            "block_end": "4999",
        }

    run_virtually(main)


def test_an_export_can_be_restored_into_another_store_and_gives_the_same_topics() -> None:
    async def main() -> None:
        async with running() as parts:
            await parts.controller.create_topics(
                [NewTopic("a", 3, configs={"retention.ms": "5"}), NewTopic("b.c", 1)]
            )
            document = json.loads(json.dumps(await export.export(parts.store)))
            topics, configs = parts.follower.image.topics, parts.follower.image.configs
        assert not [path for path in document["nodes"] if path.startswith("/brokers/ids/")]
        assert "/controller" not in document["nodes"]
        other = SimulatedEnsemble().connect()
        await export.restore(other, document)
        async with running(other) as parts:
            restored = parts.follower.image.topics
            assert {name: each.topic_id for name, each in restored.items()} == {
                name: each.topic_id for name, each in topics.items()
            }
            for name, topic in topics.items():
                for before, after in zip(topic.partitions, restored[name].partitions, strict=True):
                    assert (after.replicas, after.leader) == (before.replicas, before.leader)
                    assert after.leader_epoch == before.leader_epoch + 1, "the broker is another one now"
            assert parts.follower.image.configs == configs

    asyncio.run(main())


def test_a_store_that_is_in_use_or_an_unknown_export_is_refused() -> None:
    async def main() -> None:
        async with running() as parts:
            document = await export.export(parts.store)
            with pytest.raises(NodeExistsError, match="belongs to a cluster already"):
                await export.restore(parts.store, document)
        with pytest.raises(FormatError, match="format 2"):
            await export.restore(SimulatedEnsemble().connect(), {"format": 2, "nodes": {}})

    asyncio.run(main())


def test_logs_of_deleted_remade_and_shrunk_topics_are_strays_and_no_others() -> None:
    async def main() -> None:
        async with running() as parts:
            await parts.controller.create_topics([NewTopic("kept", 2), NewTopic("remade", 1)])
            image = parts.follower.image
            kept = image.topics["kept"].topic_id
            found = [
                (TopicPartition("kept", 0), kept),
                (TopicPartition("kept", 1), None),
                (TopicPartition("kept", 2), kept),
                (TopicPartition("remade", 0), TopicId(UUID(int=99))),
                (TopicPartition("deleted", 0), TopicId(UUID(int=98))),
            ]
            assert stray_logs(image, NODE, found) == [each for each, _ in found[2:]]
            assert stray_logs(image, NodeId(2), found) == [each for each, _ in found]

    asyncio.run(main())
