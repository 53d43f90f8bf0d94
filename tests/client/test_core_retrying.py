"""What a code asks of a client, and pauses, as values."""

import pytest

from riverlog.client.core.retrying import Backoff, Retries, Verdict, may_change, verdict_on
from riverlog.model.errors import ErrorCode

VERDICTS = {
    ErrorCode.NONE: Verdict.DONE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: Verdict.REFRESH,
    ErrorCode.LEADER_NOT_AVAILABLE: Verdict.REFRESH,
    ErrorCode.NOT_COORDINATOR: Verdict.REFRESH,
    ErrorCode.NOT_CONTROLLER: Verdict.REFRESH,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: Verdict.RETRY,
    ErrorCode.CONCURRENT_TRANSACTIONS: Verdict.RETRY,
    ErrorCode.NOT_ENOUGH_REPLICAS: Verdict.RETRY,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: Verdict.RETRY,
    ErrorCode.REQUEST_TIMED_OUT: Verdict.RETRY,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Verdict.GIVE_UP,
    ErrorCode.UNKNOWN_TOPIC_ID: Verdict.GIVE_UP,
    ErrorCode.CORRUPT_MESSAGE: Verdict.GIVE_UP,
    ErrorCode.ELECTION_NOT_NEEDED: Verdict.GIVE_UP,
    ErrorCode.INVALID_TXN_STATE: Verdict.GIVE_UP,
    ErrorCode.UNKNOWN_SERVER_ERROR: Verdict.GIVE_UP,
}


@pytest.mark.parametrize("code", VERDICTS)
def test_a_code_has_its_verdict(code: ErrorCode) -> None:
    assert verdict_on(code) is VERDICTS[code]
    assert may_change(code) == (VERDICTS[code] in (Verdict.RETRY, Verdict.REFRESH))


def test_a_code_of_a_newer_broker_is_final() -> None:
    assert verdict_on(9999) is Verdict.GIVE_UP


def test_a_topic_that_is_waited_for_is_looked_up_again() -> None:
    for code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID):
        assert verdict_on(code, wait_for_topic=True) is Verdict.REFRESH


def test_pauses_double_up_to_the_longest_and_are_spread_by_chance() -> None:
    backoff = Backoff(first_s=0.1, longest_s=1.0, spread=0.2)
    assert [backoff.pause_s(count, 0.5) for count in range(6)] == pytest.approx(
        [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    )
    assert [backoff.pause_s(0, chance) for chance in (0.0, 1.0)] == pytest.approx([0.08, 0.12])
    assert backoff.pause_s(10**6, 0.5) == pytest.approx(1.0)


def test_the_pause_that_would_miss_the_deadline_is_not_made() -> None:
    retries = Retries(10.0, Backoff(first_s=1.0, longest_s=4.0, spread=0.0))
    assert retries.next_pause_s(0.0, 0.5) == 1.0
    assert retries.next_pause_s(1.0, 0.5) == 2.0
    assert retries.next_pause_s(6.5, 0.5) is None
    assert retries.next_pause_s(6.0, 0.5) == 4.0
