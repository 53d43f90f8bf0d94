"""How a cluster speaks of transactions, and how long it lets one stay open.

Either each transaction has an epoch of its own and writing adds the partition (KIP-890), or, the older way,
the epoch stays and partitions are added by a request of their own. And a transaction can or cannot be left
open without a timeout, for an outside two-phase commit (KIP-939).
"""

from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

from riverlog.client.broker_settings import broker_setting
from riverlog.client.cluster import Cluster
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.api_versions import ApiVersionsRequest

BUMPS_EPOCH_SINCE: Final = 5
"""Of EndTxn; below, a transaction leaves the epoch as it is."""
_TWO_PHASE_SINCE: Final = 6
"""Of InitProducerId."""
_FEATURES_SINCE: Final = 3
"""Of ApiVersions."""
_MAX_TIMEOUT_KEY: Final = "transaction.max.timeout.ms"
_USUAL_MAX_TIMEOUT_MS: Final = 900_000
_SOFTWARE: Final = ("riverlog", "1")


@dataclass(frozen=True, slots=True)
class Dialect:
    bumps_epoch: bool
    """Each end raises the epoch, and a batch adds its partition by itself."""
    has_two_phase: bool


_known: WeakKeyDictionary[Cluster, Dialect] = WeakKeyDictionary()


def dialect_of(cluster: Cluster) -> Dialect:
    """Asked for once for each `Cluster`."""
    dialect = _known.get(cluster)
    if dialect is None:
        dialect = _known[cluster] = _ask(cluster)
    return dialect


def _ask(cluster: Cluster) -> Dialect:
    name, version = _SOFTWARE
    request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
    bumps_epoch = False
    if cluster.serves(ApiKey.API_VERSIONS, _FEATURES_SINCE):
        answer = cluster.ask_any(ApiKey.API_VERSIONS, request, version_max=_FEATURES_SINCE)
        features = {each.name: each.max_version_level for each in answer.finalized_features}
        bumps_epoch = features.get("transaction.version", 0) >= 2
    return Dialect(
        bumps_epoch and cluster.serves(ApiKey.END_TXN, BUMPS_EPOCH_SINCE),
        cluster.serves(ApiKey.INIT_PRODUCER_ID, _TWO_PHASE_SINCE),
    )


def longest_timeout_ms(cluster: Cluster) -> int:
    """What the broker says; its usual limit where it does not tell."""
    told = broker_setting(cluster, _MAX_TIMEOUT_KEY)
    return _USUAL_MAX_TIMEOUT_MS if told is None else int(told)
