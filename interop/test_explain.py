"""`riverlog explain` on Apache Kafka itself: the reasons are the same, told by the same APIs."""

import socket
import subprocess
from collections.abc import Iterator

import pytest

from interop.conftest import KAFKA
from tests.cli.running import CommandLine
from tests.cli.test_explain import (
    test_a_group_that_has_committed_beyond_it,
    test_a_group_without_members_that_has_read_other_topics,
    test_a_key_that_is_hashed_to_another_partition,
    test_a_key_without_records_is_said_to_have_none,
    test_a_record_that_is_there_has_no_reason_not_to_be_seen,
    test_aborted_records_and_markers,
    test_above_the_end,
    test_above_the_last_stable_offset_names_the_transaction,
    test_below_the_log_start,
    test_compacted_away_names_the_newer_offset,
    test_later_reasons_follow_the_first,
    test_members_that_have_subscribed_to_another_topic,
    test_no_such_partition,
    test_no_such_topic_names_the_nearest,
    test_the_owner_and_how_long_it_has_been_silent,
    topic,
)
from tests.waiting import eventually

__all__ = [
    "test_a_group_that_has_committed_beyond_it",
    "test_a_group_without_members_that_has_read_other_topics",
    "test_a_key_that_is_hashed_to_another_partition",
    "test_a_key_without_records_is_said_to_have_none",
    "test_a_record_that_is_there_has_no_reason_not_to_be_seen",
    "test_aborted_records_and_markers",
    "test_above_the_end",
    "test_above_the_last_stable_offset_names_the_transaction",
    "test_below_the_log_start",
    "test_compacted_away_names_the_newer_offset",
    "test_later_reasons_follow_the_first",
    "test_members_that_have_subscribed_to_another_topic",
    "test_no_such_partition",
    "test_no_such_topic_names_the_nearest",
    "test_the_owner_and_how_long_it_has_been_silent",
    "topic",
]


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of an Apache Kafka that compacts soon."""
    port = _free_port()
    command = [str(KAFKA), "serve", str(port), str(tmp_path_factory.mktemp("kafka"))]
    kafka = subprocess.Popen(
        [*command, "log.cleaner.backoff.ms=200"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        eventually(lambda: _is_up(port), "Apache Kafka is not up", timeout_s=120)
        yield f"127.0.0.1:{port}"
    finally:
        kafka.kill()
        kafka.wait()


@pytest.fixture
def riverlog(bootstrap: str) -> CommandLine:
    return CommandLine(bootstrap)


def _free_port() -> int:
    """One with the next one free as well, which its controller takes."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = int(first.getsockname()[1])
            try:
                second.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port


def _is_up(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
