"""Riverlog's answers against those recorded from Apache Kafka, sequence by sequence.

``RIVERLOG_DIFFERENTIAL_BOOTSTRAP=host:port`` replays on another broker: on Apache Kafka itself it shows
that a recording does not depend on luck.
"""

from __future__ import annotations

import os

import pytest

from tests.differential.conftest import Replay
from tests.differential.differences import DIFFERENCES
from tests.differential.sequences import SCRIPTS

_SHOWN = 20


@pytest.mark.parametrize("script", [script.id for script in SCRIPTS])
def test_answers_as_kafka_does(script: str, replay: Replay) -> None:
    found = replay.disagreements.get(script)
    assert found is not None, "not recorded as it is written now: run make record-oracle"
    shown = "\n".join(str(one) for one in found[:_SHOWN])
    if found:
        pytest.fail(f"{len(found)} disagreements in {script}\n{shown}", pytrace=False)


@pytest.mark.skipif(
    "RIVERLOG_DIFFERENTIAL_BOOTSTRAP" in os.environ, reason="another broker has other differences"
)
def test_every_difference_in_the_list_is_needed(replay: Replay) -> None:
    unused = [row for row in DIFFERENCES if not replay.normaliser.used[row]]
    assert not unused, "\n".join(f"{row.api} {row.path}: {row.reason}" for row in unused)
