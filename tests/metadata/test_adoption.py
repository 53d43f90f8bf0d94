"""What becomes of logs without metadata."""

from uuid import UUID

from riverlog.metadata import layout, payloads
from riverlog.metadata.adoption import AdoptedTopic, Adoption, FoundLog, decide_adoption
from riverlog.model.ids import LeaderEpoch, NodeId, TopicId, TopicPartition

ID, OTHER, NEW = TopicId(UUID(int=5)), TopicId(UUID(int=6)), TopicId(UUID(int=7))
EPOCH = LeaderEpoch(4)


def adopted(*logs: FoundLog) -> Adoption:
    return decide_adoption(logs, NodeId(3), "cluster", new_id=lambda: NEW, now_ms=10**12)


def log(topic: str, index: int, topic_id: TopicId | None = ID, epoch: LeaderEpoch | None = EPOCH) -> FoundLog:
    return FoundLog(TopicPartition(topic, index), topic_id, epoch)


def test_a_topic_keeps_its_id_and_its_leader_begins_a_new_epoch() -> None:
    adoption = adopted(log("t", 0), log("t", 1, None, None))
    assert adoption.topics == (AdoptedTopic("t", ID, False, 2, ()),)
    nodes = adoption.document["nodes"]
    states = [
        payloads.decode_partition("", nodes[layout.partition_state("t", index)].encode()) for index in (0, 1)
    ]
    assert [(state.leader, state.leader_epoch) for state in states] == [(3, 5), (3, 0)]
    assert payloads.decode_topic("", nodes[layout.topic("t")].encode()).replicas == ((3,), (3,))
    assert payloads.decode_cluster_id("", nodes[layout.CLUSTER_ID].encode()) == "cluster"


def test_what_the_files_do_not_tell_is_said() -> None:
    adoption = adopted(log("t", 2, None), log("u", 0, ID), log("u", 1, OTHER), log("__cluster_metadata", 0))
    assert adoption.topics == (AdoptedTopic("t", NEW, True, 3, (0, 1)),)
    assert list(adoption.refused) == ["u"]


def test_records_are_kept_and_internal_topics_compacted() -> None:
    nodes = adopted(log("t", 0), log("__consumer_offsets", 0, OTHER)).document["nodes"]
    assert payloads.decode_config("", nodes["/config/topics/t"].encode())["retention.ms"] == "-1"
    assert payloads.decode_config("", nodes["/config/topics/__consumer_offsets"].encode()) == {
        "cleanup.policy": "compact"
    }


def test_producer_ids_begin_above_all_that_were_given_out() -> None:
    nodes = adopted().document["nodes"]
    assert payloads.decode_producer_ids("", nodes[layout.PRODUCER_ID_BLOCK].encode())[1] >= 10**15
