"""Who is registered under a broker's number, when several processes want it or sessions end."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest

from riverlog.metadata import cluster, layout, payloads, registration
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.registrar import Registrar
from riverlog.metadata.registration import Registrant, Taken, has_other_boot_id, register
from riverlog.model.errors import BrokerIdInUseError, FormatError
from riverlog.model.ids import NodeId, TopicId
from riverlog.model.metadata_store import MetadataStore
from riverlog.testing.simulated_store import SimulatedEnsemble, SimulatedStore
from tests.metadata.cluster_parts import registrant
from tests.waiting import until

WAIT_S = 10.0
ONE = NodeId(1)


def run(
    scenario: Callable[[SimulatedEnsemble, SimulatedStore], Awaitable[None]], timeout_s: float = 0.05
) -> None:
    async def main() -> None:
        ensemble = SimulatedEnsemble(session_timeout_s=timeout_s)
        store = ensemble.connect()
        await cluster.prepare(store, remembered=None, fresh_id=UUID(int=7), is_shared=True)
        await scenario(ensemble, store)

    asyncio.run(main())


async def started(store: MetadataStore, me: Registrant, timeout_s: float = 0.05) -> Registrar:
    follower = MetadataFollower(store)
    await follower.start()
    registrar = Registrar(store, follower, me, session_timeout_s=timeout_s, wall_ms=lambda: 0)
    await registrar.start()
    return registrar


def test_a_registration_is_kafkas_node_and_ours_with_the_epoch() -> None:
    async def scenario(ensemble: SimulatedEnsemble, store: SimulatedStore) -> None:
        assert await register(store, registrant(1), 5) == 0
        alive, known = await store.get(layout.broker(1)), await store.get(layout.registration(1))
        assert alive is not None
        assert known is not None
        assert alive.is_mine
        assert json.loads(alive.data) == {
            "version": 5,
            "host": "127.0.0.1",
            "port": 9092,
            "jmx_port": -1,
            "timestamp": "5",
            "endpoints": ["PLAINTEXT://127.0.0.1:9092", "INNER://node1:19092"],
            "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT", "INNER": "PLAINTEXT"},
            "features": {},
            "rack": "rack1",
            "riverlog": {"epoch": 0, "host": "h"},
        }
        assert payloads.decode_registration("", known.data) == registrant(1).registration
        assert await register(store, registrant(1), 6) == 0

    run(scenario)


@pytest.mark.parametrize("lost", ["lost_answers", "lost_requests"])
def test_a_lost_answer_leaves_one_registration(lost: str) -> None:
    async def scenario(ensemble: SimulatedEnsemble, store: SimulatedStore) -> None:
        setattr(ensemble, lost, 1)
        assert await register(store, registrant(1), 5) == 0
        assert await register(store, registrant(1), 5) == 0

    run(scenario)


def test_the_own_older_registration_is_replaced_at_once_with_the_next_epoch() -> None:
    async def scenario(ensemble: SimulatedEnsemble, store: SimulatedStore) -> None:
        await register(store, registrant(1, [1, 2]), 0)
        again = ensemble.connect()
        assert await register(again, registrant(1, [2, 3]), 0) == 1
        node = await again.get(layout.broker(1))
        assert node is not None
        assert node.is_mine

    run(scenario, timeout_s=100)


@pytest.mark.parametrize("other", [registrant(1, [2]), registrant(1, [1], host="elsewhere")])
def test_a_live_registration_of_another_process_is_left_alone(other: Registrant) -> None:
    async def scenario(ensemble: SimulatedEnsemble, store: SimulatedStore) -> None:
        await register(store, registrant(1, [1]), 0)
        assert await register(ensemble.connect(), other, 0) == Taken("127.0.0.1:9092")
        with pytest.raises(BrokerIdInUseError, match=r"broker id 1 is in use by 127\.0\.0\.1:9092"):
            await started(ensemble.connect(), other)
        assert await register(store, registrant(1, [1]), 0) == 0

    run(scenario)


def test_a_copy_of_the_machine_does_not_take_the_number_of_the_one_that_runs() -> None:
    async def scenario(ensemble: SimulatedEnsemble, store: SimulatedStore) -> None:
        first = await started(store, registrant(1))
        copy = registrant(1)._replace(boot_id="another start")
        with pytest.raises(BrokerIdInUseError, match="broker id 1 is in use"):
            await started(ensemble.connect(), copy)
        assert first.broker_epoch == 0
        await first.close()

    run(scenario)


def test_of_two_processes_with_the_same_directories_the_older_one_gives_up_until_the_other_is_gone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(ensemble: SimulatedEnsemble, store: SimulatedStore) -> None:
        first = await started(store, registrant(1))
        other = ensemble.connect()
        second = await started(other, registrant(1))
        await until(lambda: first.broker_epoch is None)
        await until(lambda: caplog.text.count("Stop one of the two") >= 2)
        assert second.broker_epoch == 1
        await second.close()
        await other.close()
        await until(lambda: first.broker_epoch == 2)
        await first.close()

    run(scenario)


def test_a_broker_that_can_no_longer_be_in_the_cluster_says_so_and_comes_back_when_it_can(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(ensemble: SimulatedEnsemble, store: SimulatedStore) -> None:
        registrar = await started(store, registrant(1))
        operator = ensemble.connect()
        await operator.set(layout.FEATURES, payloads.encode_features({"transaction.version": 9}))
        store.expire()
        await until(lambda: "is not in the cluster: The cluster has feature" in caplog.text)
        assert registrar.broker_epoch is None
        await operator.set(layout.FEATURES, payloads.encode_features({"transaction.version": 2}))
        await until(lambda: registrar.broker_epoch == 1)
        await registrar.close()

    run(scenario)


def test_a_machine_that_was_started_anew_is_known_by_its_last_registration() -> None:
    async def scenario(ensemble: SimulatedEnsemble, store: SimulatedStore) -> None:
        assert await has_other_boot_id(store, ONE, "boot")
        await register(store, registrant(1), 0)
        assert not await has_other_boot_id(store, ONE, "boot")
        assert await has_other_boot_id(store, ONE, "another")
        assert await has_other_boot_id(store, ONE, "")

    run(scenario)


def test_a_number_is_free_once_the_session_of_the_other_process_is_over() -> None:
    async def scenario(ensemble: SimulatedEnsemble, store: SimulatedStore) -> None:
        await register(store, registrant(1, [1]), 0)
        store.abandon()
        registrar = await started(ensemble.connect(), registrant(1, [2]))
        assert registrar.broker_epoch == 1
        await registrar.close()

    run(scenario)


def test_after_the_session_was_lost_a_broker_registers_anew() -> None:
    async def scenario(ensemble: SimulatedEnsemble, store: SimulatedStore) -> None:
        registrar = await started(store, registrant(1))
        other = MetadataFollower(ensemble.connect())
        await other.start()
        assert other.image.brokers[ONE].epoch == 0
        store.expire()
        assert registrar.broker_epoch is None
        await until(lambda: registrar.broker_epoch == 1)
        await until(lambda: ONE in other.image.brokers and other.image.brokers[ONE].epoch == 1)
        await other.close()
        await registrar.close()

    run(scenario)


def test_a_registration_that_somebody_has_deleted_is_made_again() -> None:
    async def scenario(ensemble: SimulatedEnsemble, store: SimulatedStore) -> None:
        registrar = await started(store, registrant(1))
        await ensemble.connect().delete(layout.broker(1))
        await until(lambda: registrar.broker_epoch == 1)
        await registrar.close()

    run(scenario)


def test_the_image_shows_epoch_host_and_whether_a_broker_is_about_to_go() -> None:
    async def scenario(ensemble: SimulatedEnsemble, store: SimulatedStore) -> None:
        registrar = await started(store, registrant(1))
        follower = MetadataFollower(ensemble.connect())
        await follower.start()
        broker = follower.image.brokers[ONE]
        assert (broker.epoch, broker.host, broker.rack, broker.is_shutting_down) == (0, "h", "rack1", False)
        await registrar.announce_shutdown()
        await until(lambda: follower.image.brokers[ONE].is_shutting_down)
        await follower.close()
        await registrar.close()

    run(scenario)


def test_what_is_offline_is_told_under_each_registration_until_it_is_not() -> None:
    async def scenario(ensemble: SimulatedEnsemble, store: SimulatedStore) -> None:
        registrar = await started(store, registrant(1))
        follower = MetadataFollower(ensemble.connect())
        await follower.start()
        topic = TopicId(UUID(int=5))
        registrar.announce_offline({topic: (0, 3)})
        offline = frozenset({(topic, 0), (topic, 3)})
        await until(lambda: follower.image.brokers[ONE].offline == offline)
        assert follower.image.brokers[ONE].registration_version == 1
        store.expire()
        await until(lambda: registrar.broker_epoch == 1)
        await until(lambda: ONE in follower.image.brokers and follower.image.brokers[ONE].epoch == 1)
        assert follower.image.brokers[ONE].offline == offline
        await registrar.announce_shutdown()
        await until(lambda: follower.image.brokers[ONE].is_shutting_down)
        assert follower.image.brokers[ONE].offline == offline
        await registrar.leave()
        await until(lambda: ONE not in follower.image.brokers)
        assert registrar.broker_epoch is None
        await follower.close()

    run(scenario)


@pytest.mark.parametrize(
    ("constant", "value", "message"),
    [("OLDEST_FORMAT", 2, "Use a newer release there first"), ("FORMAT", 0, "Use a newer release here")],
)
def test_releases_that_cannot_be_in_one_cluster_are_kept_apart(
    constant: str, value: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(ensemble: SimulatedEnsemble, store: SimulatedStore) -> None:
        await register(store, registrant(1), 0)
        monkeypatch.setattr(registration, constant, value)
        with pytest.raises(FormatError, match=message):
            await register(ensemble.connect(), registrant(2, [2]), 0)
        await store.close()
        assert await register(ensemble.connect(), registrant(2, [2]), 0) == 0

    run(scenario)


def test_a_release_that_does_not_know_a_level_in_force_is_refused() -> None:
    async def scenario(ensemble: SimulatedEnsemble, store: SimulatedStore) -> None:
        await store.set(layout.FEATURES, payloads.encode_features({"transaction.version": 9}))
        with pytest.raises(FormatError, match=r"transaction\.version at level 9"):
            await register(store, registrant(1), 0)

    run(scenario)


def test_a_tree_that_another_program_uses_is_refused_as_it_is() -> None:
    async def main() -> None:
        store = SimulatedEnsemble().connect()
        await store.create("/brokers/ids/0", b"{}")
        with pytest.raises(FormatError, match="in use by another program"):
            await cluster.prepare(store, remembered=None, fresh_id=UUID(int=1), is_shared=True)
        assert await store.children("/") == ["brokers"]

    asyncio.run(main())
