"""What a follower asks one leader for: everything once, then what has moved."""

from uuid import UUID

from riverlog.model.config.replica_fetch_config import ReplicaFetchConfig
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import BrokerEpoch, LeaderEpoch, NodeId, TopicId
from riverlog.replication.following.followed import Followed, Position
from riverlog.replication.following.session import LeaderSession
from riverlog.wire.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData

TOPIC_ID = TopicId(UUID(int=5))
BROKER_EPOCH = BrokerEpoch(9)


def session_of(*indexes: int) -> tuple[LeaderSession, list[Followed]]:
    """All of them ready, at offset 10."""
    session = LeaderSession(NodeId(1), ReplicaFetchConfig())
    followed = [Followed("t", TOPIC_ID, index, LeaderEpoch(3)) for index in indexes]
    for each in followed:
        session.follow(each)
    for each in session.take_unplaced(100):
        session.place(each, Position(10, LeaderEpoch(2), 0))
    return session, followed


def ask(session: LeaderSession, now_s: float = 0.0) -> FetchRequest:
    request = session.request(now_s, BROKER_EPOCH)
    assert request is not None
    return request


def named(request: FetchRequest) -> dict[int, tuple[int, int]]:
    """Offset and last epoch that the request has of each partition."""
    return {
        each.partition: (each.fetch_offset, each.last_fetched_epoch)
        for topic in request.topics
        for each in topic.partitions
    }


def forgotten(request: FetchRequest) -> list[int]:
    return [index for topic in request.forgotten_topics_data for index in topic.partitions]


def reply(*indexes: int, session_id: int = 77) -> FetchResponse:
    data = [PartitionData(partition_index=index) for index in indexes]
    return FetchResponse(
        session_id=session_id, responses=[FetchableTopicResponse(topic_id=TOPIC_ID, partitions=data)]
    )


def answered(session: LeaderSession, response: FetchResponse) -> list[Followed]:
    answers = session.answers(response)
    assert not isinstance(answers, ErrorCode)
    return [followed for followed, _ in answers]


def test_the_first_request_names_all_and_the_next_only_what_has_moved() -> None:
    session, followed = session_of(0, 1, 2)
    first = ask(session)
    assert (first.session_id, first.session_epoch) == (0, 0)
    assert first.replica_state.replica_id == 1
    assert first.replica_state.replica_epoch == BROKER_EPOCH
    assert named(first) == {0: (10, 2), 1: (10, 2), 2: (10, 2)}
    assert answered(session, reply(0, 1, 2)) == followed
    session.place(followed[1], Position(15, LeaderEpoch(3), 0))
    second = ask(session)
    assert (second.session_id, second.session_epoch) == (77, 1)
    assert named(second) == {1: (15, 3)}
    assert answered(session, reply()) == []
    third = ask(session)
    assert third.session_epoch == 2
    assert named(third) == {}


def test_an_empty_answer_changes_nothing_that_is_asked() -> None:
    session, followed = session_of(0)
    ask(session)
    answered(session, reply())
    session.forget_session()
    assert named(ask(session)) == {0: (10, 2)}
    assert followed[0].position == Position(10, LeaderEpoch(2), 0)


def test_a_partition_that_pauses_is_taken_out_and_comes_back() -> None:
    session, followed = session_of(0, 1)
    ask(session)
    answered(session, reply(0, 1))
    session.pause(followed[0], 1.0)
    request = ask(session, now_s=0.9)
    assert forgotten(request) == [0]
    assert request.max_wait_ms == 100  # The pause ends then.
    answered(session, reply())
    session.end_pauses(0.95)
    assert not session.has_unplaced
    session.end_pauses(1.0)
    [back] = session.take_unplaced(10)
    session.place(back, Position(10, LeaderEpoch(2), 0))
    assert named(ask(session, now_s=1.0)) == {0: (10, 2)}


def test_an_answer_that_was_asked_for_under_another_epoch_is_dropped() -> None:
    session, _ = session_of(0, 1)
    ask(session)
    anew = Followed("t", TOPIC_ID, 0, LeaderEpoch(4))
    session.follow(anew)
    [placed] = session.take_unplaced(10)
    session.place(placed, Position(10, LeaderEpoch(2), 0))
    assert [each.index for each in answered(session, reply(0, 1))] == [1]
    request = ask(session)
    assert named(request) == {0: (10, 2)}
    assert request.topics[0].partitions[0].current_leader_epoch == 4
    assert forgotten(request) == []


def test_an_answer_about_a_topic_of_another_id_is_dropped() -> None:
    session, _ = session_of(0)
    ask(session)
    response = reply(0)
    response.responses[0].topic_id = UUID(int=6)
    assert answered(session, response) == []


def test_a_session_that_the_leader_does_not_know_begins_again_with_everything() -> None:
    session, _ = session_of(0, 1)
    ask(session)
    answered(session, reply(0, 1))
    ask(session)
    assert answered(session, FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)) == []
    request = ask(session)
    assert request.session_epoch == 0
    assert set(named(request)) == {0, 1}


def test_a_new_registration_begins_a_new_session() -> None:
    session, _ = session_of(0, 1)
    ask(session)
    answered(session, reply(0, 1))
    request = session.request(0.0, BrokerEpoch(BROKER_EPOCH + 1))
    assert request is not None
    assert request.session_epoch == 0
    assert set(named(request)) == {0, 1}


def test_what_is_not_followed_any_more_is_neither_asked_for_nor_answered() -> None:
    session, followed = session_of(0, 1)
    ask(session)
    session.unfollow(followed[0].key)
    assert [each.index for each in answered(session, reply(0, 1))] == [1]
    assert forgotten(ask(session)) == [0]
    session.unfollow(followed[1].key)
    assert session.request(0.0, BROKER_EPOCH) is None


def test_while_another_waits_for_its_disk_the_leader_is_to_answer_soon() -> None:
    """What is on disk by then can only be told with the next request."""
    session, followed = session_of(0, 1)
    ask(session)
    answered(session, reply(0, 1))
    session.hold(followed[0])
    request = session.request(0.0, BROKER_EPOCH, is_busy=True)
    assert request is not None
    assert request.max_wait_ms == 5
    answered(session, reply())
    assert ask(session).max_wait_ms == ReplicaFetchConfig().wait_max_ms
