"""ListTransactions 0-2: transactional ids by state and by producer id.

Since 1 also by how long a transaction is open, since 2 by a regular expression that the whole id must match.
"""

from collections.abc import Collection

from riverlog.broker.exchange.context import RequestContext
from riverlog.coordinator.transactions.coordinator import TransactionCoordinator
from riverlog.coordinator.transactions.states import TransactionState
from riverlog.coordinator.transactions.transaction import Transaction
from riverlog.model.clock import Clock
from riverlog.model.errors import ErrorCode
from riverlog.re2.matcher import Regex
from riverlog.re2.parser import InvalidRegex
from riverlog.wire.messages import list_transactions as messages
from riverlog.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

_STATES = {state.shown: state for state in TransactionState}


class ListTransactionsHandler:
    def __init__(self, transactions: TransactionCoordinator, clock: Clock) -> None:
        self._transactions = transactions
        self._clock = clock

    async def handle(
        self, request: ListTransactionsRequest, context: RequestContext
    ) -> ListTransactionsResponse:
        unknown = [each for each in request.state_filters if each not in _STATES]
        states = {_STATES[each] for each in request.state_filters if each in _STATES}
        pattern = request.transactional_id_pattern
        if pattern and not _is_regex(pattern):
            return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
        if unknown and not states:
            return ListTransactionsResponse(unknown_state_filters=unknown)
        found: list[Transaction] = []
        for answer in self._transactions.list_each():
            transactions = await answer
            if isinstance(transactions, ErrorCode):
                return ListTransactionsResponse(error_code=transactions)
            found += (each for each in transactions if self._is_wanted(each, states, request))
        if pattern:
            found = _matching(found, pattern)
        return ListTransactionsResponse(
            unknown_state_filters=unknown, transaction_states=[_listed(each) for each in found]
        )

    def _is_wanted(
        self, transaction: Transaction, states: Collection[TransactionState], request: ListTransactionsRequest
    ) -> bool:
        if states and transaction.state not in states:
            return False
        wanted_ids = request.producer_id_filters
        if wanted_ids and transaction.producer.producer_id not in wanted_ids:
            return False
        # A transactional id that never had a transaction counts, as in Kafka, as older than anything.
        started_ms = -1 if transaction.started_ms is None else transaction.started_ms
        return request.duration_filter < 0 or self._clock.wall_ms() - started_ms > request.duration_filter


def _is_regex(pattern: str) -> bool:
    try:
        Regex(pattern)
    except InvalidRegex:
        return False
    return True


def _matching(transactions: list[Transaction], pattern: str) -> list[Transaction]:
    alphabet = frozenset[str]().union(*(each.transactional_id for each in transactions))
    regex = Regex(pattern, alphabet)
    return [each for each in transactions if regex.matches(each.transactional_id)]


def _listed(transaction: Transaction) -> messages.TransactionState:
    return messages.TransactionState(
        transactional_id=transaction.transactional_id,
        producer_id=transaction.producer.producer_id,
        transaction_state=transaction.state.shown,
    )
