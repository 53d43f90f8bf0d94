"""Transactions as their coordinators describe them, of any producer: their state, and which are open."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from riverlog.client.cluster import BrokerRefused, Cluster, Question
from riverlog.client.core.metadata import CoordinatorKind
from riverlog.client.core.retrying import may_change
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerIdAndEpoch
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from riverlog.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

ONGOING: Final = "Ongoing"


@dataclass(frozen=True, slots=True)
class TransactionView:
    state: str
    producer: ProducerIdAndEpoch

    @property
    def is_open(self) -> bool:
        return self.state == ONGOING


def describe(cluster: Cluster, transactional_ids: Collection[str]) -> Mapping[str, TransactionView]:
    """What the coordinators know; those that none of them knows are left out."""
    found: dict[str, TransactionView] = {}
    left = list(transactional_ids)
    while left:
        # The coordinator of the first answers for all that it coordinates, in a small cluster for all.
        request = DescribeTransactionsRequest(transactional_ids=left)
        ask = partial(
            cluster.ask_coordinator,
            CoordinatorKind.TRANSACTION,
            left[0],
            ApiKey.DESCRIBE_TRANSACTIONS,
            request,
        )
        answer = cluster.retrying(ask, _code_of_first, doing=f"transaction of {left[0]}")
        elsewhere: list[str] = []
        for each in answer.transaction_states:
            if each.error_code == ErrorCode.NONE:
                producer = ProducerIdAndEpoch(each.producer_id, each.producer_epoch)
                found[each.transactional_id] = TransactionView(each.transaction_state, producer)
            elif may_change(each.error_code):
                elsewhere.append(each.transactional_id)
            elif each.error_code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                raise BrokerRefused(f"transaction of {each.transactional_id}", each.error_code)
        left = elsewhere
    return found


def _code_of_first(reply: DescribeTransactionsResponse) -> int:
    code = reply.transaction_states[0].error_code
    return code if may_change(code) else ErrorCode.NONE


def _code_of_list(reply: ListTransactionsResponse) -> int:
    return reply.error_code


def list_open(cluster: Cluster, prefix: str) -> set[str]:
    """The transactional ids with this prefix that have an open transaction, of every coordinator."""
    request = ListTransactionsRequest(state_filters=[ONGOING])
    found: set[str] = set()
    for node_id in cluster.brokers():
        answer = cluster.retrying(
            partial(cluster.ask_broker, node_id, ApiKey.LIST_TRANSACTIONS, request),
            _code_of_list,
            doing=f"transactions of broker {node_id}",
        )
        found |= _with_prefix(answer, prefix)
    return found


def questions_for_open(cluster: Cluster, *, brokers_age_s_max: float) -> list[Question]:
    """What `list_open` asks, to be asked together with other things; `open_in` reads the answers."""
    request = ListTransactionsRequest(state_filters=[ONGOING])
    brokers = cluster.brokers(age_s_max=brokers_age_s_max)
    return [Question.to_broker(node_id, ApiKey.LIST_TRANSACTIONS, request) for node_id in brokers]


def open_in(answers: Sequence[ListTransactionsResponse | None], prefix: str) -> set[str] | None:
    """As `list_open`; None unless every broker has answered."""
    found: set[str] = set()
    for answer in answers:
        if answer is None or answer.error_code != ErrorCode.NONE:
            return None
        found |= _with_prefix(answer, prefix)
    return found


def _with_prefix(answer: ListTransactionsResponse, prefix: str) -> set[str]:
    # Open ones are few. Brokers know patterns only since Kafka 4.1, in dialects of their own.
    names = (each.transactional_id for each in answer.transaction_states)
    return {name for name in names if name.startswith(prefix)}
