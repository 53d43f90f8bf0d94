"""One broker for the whole replay, and the whole replay before any of its tests looks at it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.differential import recording_files
from tests.differential.compare import Disagreement, disagreements, sent
from tests.differential.differences import DIFFERENCES
from tests.differential.normalise import Normaliser
from tests.differential.player import Player, in_playing_order
from tests.differential.sequences import SCRIPTS
from tests.differential.settings import OUR_CONFIG

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
    player.warm_up()
    found = {}
    for script in in_playing_order(SCRIPTS):
        played = player.play(script)
        if sent(recorded.get(script.id, [])) == sent(played):
            found[script.id] = disagreements(recorded[script.id], played, normaliser)
    return Replay(found, normaliser)
