"""What a query that will not run again has left open: ended on request.

While a query lives, its next epoch ends what the one before has left. A dropped one has no next epoch, and
its open transactions hold back everybody who reads committed records. Whoever calls this for a query that
does run fences its driver; it stops with an error, and nothing is lost or doubled.
"""

import time
from dataclasses import dataclass
from typing import Final

from riverlog.client.cluster import ClientSettings, Cluster
from riverlog.client.open_transactions import describe, list_open
from riverlog.client.transaction_dialect import dialect_of
from riverlog.client.transactions import end, fence_and_abort
from riverlog.model.errors import RiverlogError
from riverlog.spark.connection import BOOTSTRAP, connection_of
from riverlog.spark.sink.commit import TASKS_END_WITHIN_S
from riverlog.spark.sink.decisions import (
    PREFIX,
    Decider,
    create_topic,
    decision_log,
    driver_id,
)
from riverlog.spark.sink.slots import identity_of, open_tasks, tag_suffix

_LOOK_AGAIN_S: Final = 0.3


class UnknownQuery(RiverlogError):  # noqa: N818 - named for what it is
    """Perhaps misspelt."""


@dataclass(frozen=True, slots=True)
class Leftovers:
    committed: tuple[str, ...]
    """Transactional ids that were decided and not yet committed."""
    aborted: tuple[str, ...]


def abort_leftovers(bootstrap: str, query_id: str) -> Leftovers:
    """End what the query `query_id` has left in the cluster; for a batch write, `write-` and its writeId.

    One of its transactional ids will do as well. `UnknownQuery` if the cluster knows nothing of it.
    """
    client = connection_of({BOOTSTRAP: bootstrap}, ()).settings
    identity = _identity(query_id)
    with Cluster(client) as cluster:
        driver = driver_id(identity)
        if driver not in describe(cluster, [driver]) and not open_tasks(cluster, identity):
            raise UnknownQuery(
                f"no query {identity} has written here, or not within the last days; "
                "`riverlog txn list` shows what is open"
            )
    return end_leftovers(client, identity)


def _identity(given: str) -> str:
    return identity_of(given) if given.startswith(f"{PREFIX}/") else given.removeprefix(driver_id(""))


def abort_stopped(client: ClientSettings, tag: str) -> int:
    """End what the tasks of a stopped stream leave, which is known by its options only; how many.

    Spark asks for this while its tasks are still being killed, so it looks again for a while.
    """
    count = 0
    deadline = time.monotonic() + TASKS_END_WITHIN_S
    with Cluster(client) as cluster:
        while True:
            found = [each for each in list_open(cluster, f"{PREFIX}/") if each.endswith(tag_suffix(tag))]
            for identity in {identity_of(each) for each in found}:
                ended = end_leftovers(client, identity)
                count += len(ended.aborted)
            if time.monotonic() > deadline:
                return count
            time.sleep(_LOOK_AGAIN_S)


def end_leftovers(client: ClientSettings, identity: str) -> Leftovers:
    with Cluster(client) as cluster:
        dialect = dialect_of(cluster)
        create_topic(cluster)
        log = decision_log(cluster, identity)
        assert log is not None, "the topic was just created"
        decision = Decider.take(cluster, dialect, log).log.newest
        decided = () if decision is None else decision.transactions
        views = describe(cluster, [each.transactional_id for each in decided])
        committed = []
        for each in decided:
            view = views.get(each.transactional_id)
            if view is not None and view.is_open and view.producer == each.producer:
                end(cluster, each.transactional_id, each.producer, dialect, commit=True)
                committed.append(each.transactional_id)
        aborted = sorted(open_tasks(cluster, identity) - set(committed))
        for name in aborted:
            fence_and_abort(cluster, name)
        return Leftovers(tuple(committed), tuple(aborted))
