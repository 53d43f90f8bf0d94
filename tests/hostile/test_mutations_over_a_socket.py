"""Forty thousand spoilt requests over a socket to ``riverlog serve`` under a memory limit.

Behind each goes a good request: it is answered, or the connection is closed, and nothing else may happen.
"""

from __future__ import annotations

import pathlib
import random
import struct

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.differential.connection import Connection, ConnectionClosedError, NoAnswerError
from tests.hostile import corpus
from tests.hostile.look import create_topic, offered_versions, topic_id_of
from tests.hostile.mutations import mutate
from tests.hostile.served import Served, serve
from tests.hostile.tally import SEED, Tally

ROUND = 8_000
ROUNDS = 5
WARM_UP_ROUNDS = 1
GROWTH_MAX_BYTES = 24 << 20
SOCKETS_MORE_MAX = 2
"""The last client's, which may not be gone yet. One that waits for others, as in JoinGroup, is not read
from meanwhile, so that its going is noticed when its wait ends."""
FILES_PER_PARTITION = 3
FILES_OF_THE_NODE = 8
_PATIENCE_S = 0.05
_SENTINEL = bytes.fromhex("0000000a" + "0012" + "0000" + "00005afe" + "ffff")


def test_spoilt_requests_leave_the_server_as_it_was(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve(tmp_path, auto_create_topics_enable="false", num_partitions="1") as served:
        create_topic(served.bootstrap, corpus.TOPIC, 3)
        _real_client_works(served)
        offered = offered_versions(served.bootstrap)
        samples = corpus.build(offered, topic_id_of(served.bootstrap, corpus.TOPIC))
        throwing = _Throwing(served, samples, Tally(offered))
        memory, sockets = [], []
        for _ in range(ROUNDS):
            throwing.throw()
            memory.append(served.memory_bytes())
            sockets.append(served.sockets())
        files, files_max = served.open_files(), FILES_PER_PARTITION * served.partitions() + FILES_OF_THE_NODE
        _real_client_works(served)
        log = served.log.read_text(errors="replace")
    with capsys.disabled():
        print("\n" + throwing.tally.report(__file__))  # noqa: T201
        print(f"{throwing.closed} closed the connection, {throwing.waited} waited")  # noqa: T201
        print(f"memory after each round: {[size >> 20 for size in memory]} MiB")  # noqa: T201
        print(f"sockets after each round: {sockets}; open files: {files}")  # noqa: T201
    assert throwing.tally.sent == ROUNDS * ROUND
    assert throwing.tally.past_header.keys() == offered.keys()
    assert "Traceback" not in log, log[log.index("Traceback") :][:4000]
    assert memory[-1] - memory[WARM_UP_ROUNDS] < GROWTH_MAX_BYTES
    assert sockets[-1] - sockets[0] <= SOCKETS_MORE_MAX + throwing.waited
    assert files <= files_max


class _Throwing:
    def __init__(self, served: Served, samples: list[corpus.Sample], tally: Tally) -> None:
        host, _, port = served.bootstrap.rpartition(":")
        self._address = (host, int(port))
        self._samples = samples
        self._rng = random.Random(SEED + 1)
        self.tally = tally
        self.closed = self.waited = 0

    def throw(self) -> None:
        """One round. A connection lives until the server closes it or keeps it waiting."""
        connection: Connection | None = None
        for _ in range(ROUND):
            sample = self._samples[self.tally.sent % len(self._samples)]
            payload = mutate(self._rng, sample, self._samples)
            self.tally.count(payload)
            connection = connection or Connection(*self._address, _PATIENCE_S)
            try:
                connection.send(struct.pack(">i", len(payload)) + payload + _SENTINEL)
                while connection.receive()[:4] != _SENTINEL[8:12]:
                    pass
                continue
            except ConnectionClosedError:
                self.closed += 1
            except NoAnswerError:
                self.waited += 1
            connection.close()
            connection = None
        if connection is not None:
            connection.close()


def _real_client_works(served: Served) -> None:
    producer = Producer({"bootstrap.servers": served.bootstrap, "enable.idempotence": True})
    refused: list[object] = []
    # A spoilt request may have made the topic a compacted one, which takes records with a key only.
    producer.produce(
        corpus.TOPIC,
        b"still here",
        key=b"key",
        partition=1,
        on_delivery=lambda error, _: refused.append(error) if error else None,
    )
    assert producer.flush(20) == 0
    assert refused == []
    # A spoilt request may have left a transaction open, which holds back who reads committed records only.
    consumer = Consumer(
        {
            "bootstrap.servers": served.bootstrap,
            "group.id": "hostile",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_uncommitted",
        }
    )
    low, high = consumer.get_watermark_offsets(_partition(), timeout=20)
    assert high > low
    consumer.assign([_partition(high - 1)])
    message = consumer.poll(20)
    consumer.close()
    assert message is not None
    assert message.value() == b"still here"


def _partition(offset: int = 0) -> TopicPartition:
    return TopicPartition(corpus.TOPIC, 1, offset)
