"""Transactions as their coordinators offer them: begin, end from whatever process, look at them, list them.

Who ends a transaction need not be who wrote it: transactional id, producer id and epoch are all it takes.
`Dialect` says how a cluster speaks of transactions: with an epoch for each (KIP-890), where writing adds the
partition, or the older way, where partitions are added by a request of their own; and whether a transaction
can be left open without a timeout for an outside two-phase commit (KIP-939). Not here: records.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from riverlog.client.cluster import MOVED, BrokerRefused, Cluster, CoordinatorKind
from riverlog.model.errors import ErrorCode, RiverlogError
from riverlog.model.ids import TopicPartition
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from riverlog.wire.messages.api_versions import ApiVersionsRequest
from riverlog.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from riverlog.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from riverlog.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from riverlog.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from riverlog.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

ONGOING: Final = "Ongoing"
_TWO_PHASE_SINCE: Final = 6
"""Of InitProducerId."""
_EPOCH_EACH_SINCE: Final = 5
"""Of EndTxn; below, a transaction leaves the epoch as it is."""
_ADD_FOR_CLIENTS: Final = 3
"""Of AddPartitionsToTxn: the later ones are for brokers."""
_FEATURES_SINCE: Final = 3
"""Of ApiVersions."""
_BROKER_RESOURCE: Final = 4
_MAX_TIMEOUT_KEY: Final = "transaction.max.timeout.ms"
_USUAL_MAX_TIMEOUT_MS: Final = 900_000
_FENCING_TIMEOUT_MS: Final = 60_000
_SOFTWARE: Final = ("riverlog", "1")

BUSY: Final = MOVED | {ErrorCode.CONCURRENT_TRANSACTIONS}
"""Codes that say: ask again, the coordinator is moving, or still busy with what was before."""

ENDED_OTHERWISE: Final = frozenset(
    {
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    }
)
"""What EndTxn is refused with when somebody else, or time, has ended the transaction."""


@dataclass(frozen=True, slots=True)
class Producer:
    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True)
class Dialect:
    has_epoch_each: bool
    """Each end raises the epoch, and a batch adds its partition by itself."""
    has_two_phase: bool


@dataclass(frozen=True, slots=True)
class TransactionView:
    state: str
    producer: Producer

    @property
    def is_open(self) -> bool:
        return self.state == ONGOING


class TransactionEndedOtherwise(RiverlogError):  # noqa: N818 - named for what it is
    """The transaction is not there to be ended: timed out, aborted by somebody, or taken over."""

    def __init__(self, transactional_id: str, code: ErrorCode) -> None:
        super().__init__(f"transaction of {transactional_id}: {code.name}")
        self.transactional_id = transactional_id
        self.code = code


def dialect_of(cluster: Cluster) -> Dialect:
    name, version = _SOFTWARE
    request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
    has_epoch_each = False
    if cluster.serves(ApiKey.API_VERSIONS, _FEATURES_SINCE):
        answer = cluster.ask_any(ApiKey.API_VERSIONS, request, version_max=_FEATURES_SINCE)
        features = {each.name: each.max_version_level for each in answer.finalized_features}
        has_epoch_each = features.get("transaction.version", 0) >= 2
    return Dialect(
        has_epoch_each and cluster.serves(ApiKey.END_TXN, _EPOCH_EACH_SINCE),
        cluster.serves(ApiKey.INIT_PRODUCER_ID, _TWO_PHASE_SINCE),
    )


def idempotent_producer(cluster: Cluster) -> Producer:
    """One without transactions."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_FENCING_TIMEOUT_MS)
    answer: InitProducerIdResponse = cluster.retrying(
        lambda: cluster.ask_any(ApiKey.INIT_PRODUCER_ID, request),
        lambda reply: reply.error_code,
        doing="a producer id",
    )
    return Producer(answer.producer_id, answer.producer_epoch)


def take_over(
    cluster: Cluster, transactional_id: str, *, timeout_ms: int | None, doing: str | None = None
) -> Producer:
    """Speak for the id from now on; its open transaction is aborted, who wrote it is fenced.

    Without a timeout what is begun stays open until it is ended (KIP-939).
    """
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=_FENCING_TIMEOUT_MS if timeout_ms is None else timeout_ms,
        enable2_pc=timeout_ms is None,
    )
    answer: InitProducerIdResponse = cluster.retrying(
        lambda: cluster.ask_coordinator(
            CoordinatorKind.TRANSACTION, transactional_id, ApiKey.INIT_PRODUCER_ID, request
        ),
        lambda reply: reply.error_code,
        doing=doing or f"producer id for {transactional_id}",
        retry_on=BUSY,
    )
    return Producer(answer.producer_id, answer.producer_epoch)


def begin_longest(
    cluster: Cluster, transactional_id: str, dialect: Dialect, timeout_ms: int | None
) -> tuple[Producer, bool]:
    """Take over for a transaction that may stay open as long as the cluster lets it; whether for ever.

    `timeout_ms` is what is asked for where it cannot be for ever; None: the longest that the broker allows.
    """
    if dialect.has_two_phase:
        try:
            return take_over(cluster, transactional_id, timeout_ms=None), True
        except BrokerRefused as refusal:
            # Switched off, or not allowed for this id. If the id is not allowed at all, the next try says so.
            if refusal.code is not ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
                raise
    longest_ms = longest_timeout_ms(cluster) if timeout_ms is None else timeout_ms
    return take_over(cluster, transactional_id, timeout_ms=longest_ms), False


def longest_timeout_ms(cluster: Cluster) -> int:
    """What the broker says; its usual limit where it does not tell."""
    node_id = min(cluster.brokers())
    resource = DescribeConfigsResource(
        resource_type=_BROKER_RESOURCE, resource_name=str(node_id), configuration_keys=[_MAX_TIMEOUT_KEY]
    )
    answer = cluster.ask_broker(
        node_id, ApiKey.DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=[resource])
    )
    for result in answer.results:
        for each in result.configs:
            if each.name == _MAX_TIMEOUT_KEY and each.value is not None:
                return int(each.value)
    return _USUAL_MAX_TIMEOUT_MS


def add_partitions(
    cluster: Cluster, transactional_id: str, producer: Producer, partitions: Iterable[TopicPartition]
) -> None:
    """For the older dialect, before the first batch to each."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=[
            AddPartitionsToTxnTopic(name=name, partitions=indexes) for name, indexes in topics.items()
        ],
    )
    cluster.retrying(
        lambda: cluster.ask_coordinator(
            CoordinatorKind.TRANSACTION,
            transactional_id,
            ApiKey.ADD_PARTITIONS_TO_TXN,
            request,
            version_max=_ADD_FOR_CLIENTS,
        ),
        _first_code,
        doing=f"partitions for the transaction of {transactional_id}",
        retry_on=BUSY,
    )


def _first_code(reply: AddPartitionsToTxnResponse) -> int:
    codes = [
        each.partition_error_code
        for topic in reply.results_by_topic_v3_and_below
        for each in topic.results_by_partition
    ]
    return next((code for code in codes if code), ErrorCode.NONE)


def end(
    cluster: Cluster, transactional_id: str, producer: Producer, dialect: Dialect, *, commit: bool
) -> None:
    """Commit or abort; once more does no harm. `TransactionEndedOtherwise` when it was not to be had."""
    request = EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        committed=commit,
    )
    try:
        cluster.retrying(
            lambda: cluster.ask_coordinator(
                CoordinatorKind.TRANSACTION,
                transactional_id,
                ApiKey.END_TXN,
                request,
                version_max=None if dialect.has_epoch_each else _EPOCH_EACH_SINCE - 1,
            ),
            _code_of_end,
            doing=f"{'commit' if commit else 'abort'} of {transactional_id}",
            retry_on=BUSY,
        )
    except BrokerRefused as refusal:
        if refusal.code in ENDED_OTHERWISE:
            raise TransactionEndedOtherwise(transactional_id, refusal.code) from refusal
        raise


def _code_of_end(reply: EndTxnResponse) -> int:
    return reply.error_code


def abort_whoever_writes(cluster: Cluster, transactional_id: str) -> None:
    """End the open transaction of an id without being its producer; who wrote it is fenced."""
    take_over(
        cluster,
        transactional_id,
        timeout_ms=_FENCING_TIMEOUT_MS,
        doing=f"abort of the transaction of {transactional_id}",
    )


def describe(cluster: Cluster, transactional_ids: Collection[str]) -> Mapping[str, TransactionView]:
    """What the coordinators know; those that nobody knows are left out."""
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
                producer = Producer(each.producer_id, each.producer_epoch)
                found[each.transactional_id] = TransactionView(each.transaction_state, producer)
            elif each.error_code in BUSY:
                elsewhere.append(each.transactional_id)
            elif each.error_code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                raise BrokerRefused(f"transaction of {each.transactional_id}", each.error_code)
        left = elsewhere
    return found


def _code_of_first(reply: DescribeTransactionsResponse) -> int:
    code = reply.transaction_states[0].error_code
    return code if code in BUSY else ErrorCode.NONE


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
        # Open ones are few. Brokers know patterns only since Kafka 4.1, in dialects of their own.
        found |= {
            each.transactional_id
            for each in answer.transaction_states
            if each.transactional_id.startswith(prefix)
        }
    return found
