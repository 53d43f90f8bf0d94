"""``make record-oracle``: ask Apache Kafka everything and write down what it says.

With names of APIs as arguments only their sequences are played and only their files are written.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from tests.differential import oracle, recording_files
from tests.differential.differences import DIFFERENCES
from tests.differential.normalise import Normaliser
from tests.differential.player import Player, in_playing_order
from tests.differential.sequences import SCRIPTS
from tests.differential.settings import ORACLE_CONFIG

Json = Any


def main(apis: list[str]) -> None:
    scripts = [script for script in SCRIPTS if not apis or script.api in apis]
    with oracle.running(ORACLE_CONFIG) as (host, port):
        player = Player(host, port, Normaliser(DIFFERENCES, port))
        player.warm_up()
        played: dict[str, list[Json]] = {}
        for script in in_playing_order(scripts):
            began = time.monotonic()
            played[script.id] = player.play(script)
            sys.stderr.write(f"{time.monotonic() - began:6.2f} s  {script.id}\n")
    by_api: dict[str, dict[str, list[Json]]] = {}
    for script in scripts:
        by_api.setdefault(script.api, {})[script.name] = played[script.id]
    for api, sequences in by_api.items():
        recording_files.save(api, sequences)
    recording_files.remove_others({script.api for script in SCRIPTS})
    exchanges = sum(len(sequence) for sequence in played.values())
    sys.stderr.write(f"{exchanges} steps in {len(played)} sequences recorded\n")


if __name__ == "__main__":
    main(sys.argv[1:])
