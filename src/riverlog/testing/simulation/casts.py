"""The clients of a case, made from what it says of each, and what those of one kind share.

Members of all groups share what they have been told about offsets and ownership; a transactor that begins
again goes on with what it knew of its offsets. Not here: what clients do (`clients`).
"""

from collections.abc import Iterable, Mapping
from typing import Any

from riverlog.model.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from riverlog.records.compression import Codec
from riverlog.testing.simulation.cases import TOPICS, Case
from riverlog.testing.simulation.clients.admins import Admin, TopicPlan
from riverlog.testing.simulation.clients.consumers import Consumer, ConsumerPlan
from riverlog.testing.simulation.clients.members import ClassicMember, ConsumerMember, Member
from riverlog.testing.simulation.clients.offsets import CommittedOffsets, TransactionalOffsets
from riverlog.testing.simulation.clients.ownership import Ownership
from riverlog.testing.simulation.clients.process import SimulatedClient, Surroundings
from riverlog.testing.simulation.clients.producers import Producer, ProducerPlan
from riverlog.testing.simulation.clients.transactors import Transactor, TransactorPlan


class Cast:
    def __init__(self, case: Case) -> None:
        self._case = case
        self._offsets, self._ownership = CommittedOffsets(), Ownership()
        self._transactional_offsets: dict[str, TransactionalOffsets] = {}
        self._log_life = 0

    def forget_offsets(self) -> None:
        """What was committed may be gone."""
        self._offsets.forget()
        for offsets in self._transactional_offsets.values():
            offsets.forget()

    def begin_log_life(self, clients: Iterable[SimulatedClient]) -> None:
        """What the log of groups says may have gone back."""
        self._log_life += 1
        for client in clients:
            if isinstance(client, Member):
                client.log_life = self._log_life

    def make(self, around: Surroundings, plan: Mapping[str, Any]) -> SimulatedClient:
        pause_s, topic = plan.get("pause_s", 0.5), plan.get("topic", "transactional")
        match plan["kind"]:
            case "admin":
                return Admin(around, _topics(self._case), pause_s=pause_s)
            case "producer":
                return Producer(around, _producer_plan(plan, topic, pause_s))
            case "consumer":
                is_committed_only = plan.get("is_committed_only", False)
                return Consumer(
                    around, ConsumerPlan(topic, TOPICS[topic], is_committed_only, pause_s=pause_s / 2)
                )
            case "transactor":
                producing = ProducerPlan(topic, TOPICS[topic], pause_s=pause_s * 2)
                name = plan["name"]
                transactions = TransactorPlan(
                    name,
                    is_newer=plan["is_newer"],
                    group=f"group of {name}",
                    hasty_chance=plan.get("hasty_chance", 0.0),
                )
                offsets = self._transactional_offsets.setdefault(name, TransactionalOffsets())
                return Transactor(around, producing, transactions, offsets)
            case "classic" | "member":
                make = ClassicMember if plan["kind"] == "classic" else ConsumerMember
                member = make(
                    around,
                    plan["kind"],
                    topic,
                    TOPICS[topic],
                    self._offsets,
                    self._ownership,
                    pause_s=pause_s,
                )
                member.log_life = self._log_life
                member.looks_first = plan.get("looks_first", False)
                return member
            case other:
                raise AssertionError(f"unknown kind of client {other!r}")


def topics_of(plan: Mapping[str, Any]) -> list[str]:
    """What a client needs; an administrator goes on whatever is lost."""
    match plan["kind"]:
        case "producer" | "consumer":
            return [plan["topic"]]
        case "transactor":
            return ["transactional", OFFSETS_TOPIC, TRANSACTIONS_TOPIC]
        case "classic" | "member":
            return ["transactional", OFFSETS_TOPIC]
        case _:
            return []


def _producer_plan(plan: Mapping[str, Any], topic: str, pause_s: float) -> ProducerPlan:
    return ProducerPlan(
        topic,
        TOPICS[topic],
        acks=plan.get("acks", -1),
        is_idempotent=plan["is_idempotent"],
        keys=plan.get("keys", 0),
        codec=Codec(plan.get("codec", 0)),
        records_max=plan.get("records_max", 5),
        value_bytes=plan.get("value_bytes", 60),
        is_even=plan.get("is_even", False),
        pause_s=pause_s,
    )


def _topics(case: Case) -> list[TopicPlan]:
    topics = [
        TopicPlan("plain", TOPICS["plain"]),
        TopicPlan("compacted", TOPICS["compacted"], {"cleanup.policy": "compact"}),
        TopicPlan("transactional", TOPICS["transactional"]),
        TopicPlan("trimmed", TOPICS["trimmed"], {"retention.ms": "15000"}, is_trimmed=True),
        # Where nodes are lost for ever a topic cannot be made anew with as many replicas.
        TopicPlan("scratch", TOPICS["scratch"], is_scratch=case.profile != "core"),
    ]
    for topic in topics:
        topic.replication_factor = case.replication.get(topic.name, 1)
        topic.configs.update(case.topic_settings)
    return topics
