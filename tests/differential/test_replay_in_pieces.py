"""All recordings once more, with every request taken for a long one: in pieces nothing is different."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from riverlog.broker.dispatch import dispatcher
from riverlog.broker.exchange import long_work
from riverlog.broker.fetch import handler as fetch_handler
from riverlog.broker.handlers import describe_configs
from riverlog.broker.produce import handler as produce_handler
from riverlog.testing import Broker
from riverlog.wire import codec
from riverlog.wire.by_hand import fetch_request as by_hand_fetch
from riverlog.wire.by_hand import produce_request as by_hand_produce
from tests.differential.compare import disagreements, sent
from tests.differential.conftest import PATIENCE_S
from tests.differential.differences import DIFFERENCES
from tests.differential.normalise import Normaliser
from tests.differential.player import Player, in_playing_order
from tests.differential.sequences import SCRIPTS
from tests.differential.settings import OUR_CONFIG


def test_answers_in_pieces_are_those_of_kafka(
    recorded: dict[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "_LONG_REQUEST_BYTES", 0)
    monkeypatch.setattr(describe_configs, "_SHORT_RESOURCES_MAX", 0)
    for name, module in list(sys.modules.items()):
        is_asked = name.startswith("riverlog.broker.handlers.") or module is long_work
        if is_asked and hasattr(module, "SHORT_ENTRIES_MAX"):
            monkeypatch.setattr(module, "SHORT_ENTRIES_MAX", 0)
    _read_none_at_once(monkeypatch)
    found = []
    with Broker(config=OUR_CONFIG) as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        normaliser = Normaliser(DIFFERENCES, int(port))
        player = Player(host, int(port), normaliser, PATIENCE_S)
        player.warm_up()
        for script in in_playing_order(SCRIPTS):
            played = player.play(script)
            assert sent(recorded.get(script.id, [])) == sent(played), script.id
            found += [(script.id, str(one)) for one in disagreements(recorded[script.id], played, normaliser)]
    assert not found


def _read_none_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither fetches nor produces, which are long by what they name and not by their bytes."""
    monkeypatch.setattr(codec, "_PIECES_AT_ONCE", 0)
    for module in (by_hand_fetch, by_hand_produce):
        monkeypatch.setattr(module, "_SHORT_BYTES", 0)
        for short in ("_read_by_id", "_read_named", "_read_classic"):
            if hasattr(module, short):
                monkeypatch.setattr(module, short, lambda *_: None)
    monkeypatch.setattr(fetch_handler, "LONG_MIN", 0)
    monkeypatch.setattr(produce_handler, "AT_ONCE_MAX", -1)
