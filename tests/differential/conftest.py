"""One broker for the whole replay, and the whole replay before any of its tests looks at it; and three."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.differential import recording_files
from tests.differential.brokers import replayed
from tests.differential.brokers.sequences import SCRIPTS as BROKERS_SCRIPTS
from tests.differential.compare import Disagreement, disagreements, sent
from tests.differential.differences import DIFFERENCES, OF_BROKERS
from tests.differential.normalise import Normaliser
from tests.differential.player import Player, in_playing_order
from tests.differential.sequences import SCRIPTS
from tests.differential.settings import OUR_CONFIG
from tests.differential.steps import Script

Json = Any

PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True)
class Replay:
    """What was found, by the id of the script."""

    disagreements: dict[str, list[Disagreement]]
    normaliser: Normaliser


@pytest.fixture(scope="session")
def recorded() -> dict[str, list[Json]]:
    return recording_files.load()


@pytest.fixture(scope="session")
def address() -> Iterator[tuple[str, int]]:
    """Riverlog, or whatever listens at RIVERLOG_DIFFERENTIAL_BOOTSTRAP."""
    given = os.environ.get("RIVERLOG_DIFFERENTIAL_BOOTSTRAP")
    if given:
        host, _, port = given.rpartition(":")
        yield host, int(port)
        return
    from riverlog.testing import Broker

    with Broker(config=OUR_CONFIG) as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        yield host, int(port)


@pytest.fixture(scope="session")
def replay(address: tuple[str, int], recorded: dict[str, list[Json]]) -> Replay:
    host, port = address
    normaliser = Normaliser(DIFFERENCES, port)
    player = Player(host, port, normaliser, PATIENCE_S)
    return _replayed(player, SCRIPTS, recorded, normaliser)


@pytest.fixture(scope="session")
def recorded_of_brokers() -> dict[str, list[Json]]:
    return recording_files.load(recording_files.OF_BROKERS)


@pytest.fixture(scope="session")
def replay_of_brokers(recorded_of_brokers: dict[str, list[Json]]) -> Replay:
    with replayed.running() as brokers:
        normaliser = Normaliser(OF_BROKERS, {each: port for each, (_, port) in brokers.addresses.items()})
        player = Player(*brokers.addresses[1], normaliser, PATIENCE_S, brokers)
        return _replayed(player, BROKERS_SCRIPTS, recorded_of_brokers, normaliser)


def _replayed(
    player: Player, scripts: list[Script], recorded: dict[str, list[Json]], normaliser: Normaliser
) -> Replay:
    player.warm_up()
    found = {}
    for script in in_playing_order(scripts):
        played = player.play(script)
        if sent(recorded.get(script.id, [])) == sent(played):
            found[script.id] = disagreements(recorded[script.id], played, normaliser)
    return Replay(found, normaliser)
