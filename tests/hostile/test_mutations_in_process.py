"""Seventy thousand spoilt requests through decoding and dispatch, without a socket between.

Nothing may fail as a bug does, hang, or keep memory. Requests that wait are given up after a moment, as by a
client that goes away.
"""

from __future__ import annotations

import asyncio
import gc
import random

import psutil
import pytest

from riverlog.broker.exchange.delayed import PendingReply
from riverlog.broker.exchange.origin import Origin
from riverlog.broker.net.connection import Later, Pending
from riverlog.model.network import Address
from riverlog.node.adapters.metrics import InMemoryMetrics
from riverlog.node.node import Node
from riverlog.testing import Broker
from tests.hostile import corpus
from tests.hostile.look import offered_versions, topic_id_of
from tests.hostile.mutations import mutate
from tests.hostile.tally import SEED, Tally
from tests.waiting import loop_turns

ROUND = 10_000
ROUNDS = 7
WARM_UP_ROUNDS = 2
GROWTH_MAX_BYTES = 32 << 20
_GIVE_UP_S = 0.005
_ORIGIN = Origin(Address("127.0.0.1", 1), "PLAINTEXT")


def test_spoilt_requests_are_refused_without_harm(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker(config={"auto.create.topics.enable": "false"}) as broker:
        broker.create_topic(corpus.TOPIC, 3)
        offered = offered_versions(broker.bootstrap_servers)
        samples = corpus.build(offered, topic_id_of(broker.bootstrap_servers, corpus.TOPIC))
        spoilt = _Spoilt(random.Random(SEED), samples, Tally(offered))
        memory = [broker.call(spoilt.throw) for _ in range(ROUNDS)]
        metrics = broker.node.metrics
        assert isinstance(metrics, InMemoryMetrics)
        assert offered_versions(broker.bootstrap_servers) == offered
    with capsys.disabled():
        print("\n" + spoilt.tally.report(__file__))  # noqa: T201
        print(f"{_reached(metrics):.0f} of them could be read and reached a handler")  # noqa: T201
        print(f"memory after each round: {[size >> 20 for size in memory]} MiB")  # noqa: T201
    assert spoilt.tally.sent == ROUNDS * ROUND
    assert spoilt.tally.past_header.keys() == offered.keys()
    assert metrics.value("riverlog_requests_failed_total") == 0, "a handler has failed: see the log above"
    assert memory[-1] - memory[WARM_UP_ROUNDS] < GROWTH_MAX_BYTES


class _Spoilt:
    """An endless stream of mutations, thrown at the dispatcher of a node on the node's own loop."""

    def __init__(self, rng: random.Random, samples: list[corpus.Sample], tally: Tally) -> None:
        self._rng, self._samples, self.tally = rng, samples, tally

    async def throw(self, node: Node) -> int:
        """One round; returns what the process holds afterwards."""
        answering = node.serving.connections._answering
        for number in range(ROUND):
            sample = self._samples[self.tally.sent % len(self._samples)]
            payload = mutate(self._rng, sample, self._samples)
            self.tally.count(payload)
            answer = answering.dispatch(memoryview(bytearray(payload)), _ORIGIN)
            if isinstance(answer, Later):
                await _settle(answer.answer)
            elif number % 50 == 0:
                await loop_turns()
        gc.collect()
        return int(psutil.Process().memory_info().rss)


async def _settle(pending: Pending) -> None:
    """Wait a little for the answer, then give it up."""
    if isinstance(pending, PendingReply):
        kept = asyncio.get_running_loop().create_future()
        pending.add_done_callback(lambda _: kept.set_result(None))
        await asyncio.wait({kept}, timeout=_GIVE_UP_S)
        pending.cancel()
    else:
        await asyncio.wait({pending}, timeout=_GIVE_UP_S)
        pending.cancel()
        await asyncio.wait({pending})


def _reached(metrics: InMemoryMetrics) -> float:
    return sum(value for name, value in metrics.values().items() if name.name == "riverlog_requests_total")
