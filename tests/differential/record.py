"""``make record-oracle``: ask Apache Kafka everything and write down what it says.

With names of APIs as arguments only their sequences are played and only their files are written.
"""

from __future__ import annotations

import pathlib
import sys
import time
from typing import Any

from tests.differential import oracle, recording_files
from tests.differential.brokers import oracle as brokers_oracle
from tests.differential.brokers.sequences import SCRIPTS as BROKERS_SCRIPTS
from tests.differential.differences import DIFFERENCES, OF_BROKERS
from tests.differential.normalise import Normaliser
from tests.differential.player import Player, in_playing_order
from tests.differential.sequences import SCRIPTS
from tests.differential.settings import ORACLE_CONFIG
from tests.differential.steps import Script

Json = Any

BROKERS_PATIENCE_S = 30.0


def main(apis: list[str]) -> None:
    """`brokers` is the name of all that is asked of several brokers."""
    if not apis or apis != ["brokers"]:
        record([script for script in SCRIPTS if not apis or script.api in apis])
        recording_files.remove_others({script.api for script in SCRIPTS})
    if not apis or "brokers" in apis:
        record_of_brokers()


def record(scripts: list[Script]) -> None:
    with oracle.running(ORACLE_CONFIG) as (host, port):
        player = Player(host, port, Normaliser(DIFFERENCES, port))
        player.warm_up()
        _play_and_save(player, scripts, recording_files.DIRECTORY)


def record_of_brokers() -> None:
    with brokers_oracle.running() as cluster:
        player = Player(
            "127.0.0.1", cluster.ports[1], Normaliser(OF_BROKERS, cluster.ports), BROKERS_PATIENCE_S, cluster
        )
        player.warm_up()
        _play_and_save(player, BROKERS_SCRIPTS, recording_files.OF_BROKERS)
    recording_files.remove_others({script.api for script in BROKERS_SCRIPTS}, recording_files.OF_BROKERS)


def _play_and_save(player: Player, scripts: list[Script], directory: pathlib.Path) -> None:
    played: dict[str, list[Json]] = {}
    for script in in_playing_order(scripts):
        began = time.monotonic()
        played[script.id] = player.play(script)
        sys.stderr.write(f"{time.monotonic() - began:6.2f} s  {script.id}\n")
    by_api: dict[str, dict[str, list[Json]]] = {}
    for script in scripts:
        by_api.setdefault(script.api, {})[script.name] = played[script.id]
    for api, sequences in by_api.items():
        recording_files.save(api, sequences, directory)
    exchanges = sum(len(sequence) for sequence in played.values())
    sys.stderr.write(f"{exchanges} steps in {len(played)} sequences recorded\n")


if __name__ == "__main__":
    main(sys.argv[1:])
