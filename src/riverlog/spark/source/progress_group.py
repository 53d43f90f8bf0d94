"""A stream's progress, committed to a consumer group so that ordinary tools show its lag. Never read back.

The group is `kafka.group.id`, or the prefix and the query's name or id. Spark does not tell the process that
plans a stream which query that is; it tells the tasks. So while the group is not known, the first task of a
batch commits the position that its batch begins at, which is finished, together with a token of this
stream; after the batch the group that bears the token is ours. Progress that cannot be committed is worth a
warning only: it is nobody's position.
"""

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from riverlog.client.broker_connection import UnsupportedApiError
from riverlog.client.cluster import BrokerRefused, Cluster, ClusterUnreachable
from riverlog.client.offsets import commit_offsets, committed
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.spark.source.places import Offsets
from riverlog.spark.source.plan import Introduction, Split
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse

COMMIT_DEADLINE_S: Final = 5.0
_FAILURES: Final = (BrokerRefused, ClusterUnreachable, UnsupportedApiError)
_log = logging.getLogger(__name__)


class ProgressGroup:
    def __init__(self, cluster: Cluster, group: str | None, prefix: str, token: str) -> None:
        self._cluster = cluster
        self._group = group
        self._introduction = Introduction(token, prefix)
        self._introduced_by: TopicPartition | None = None
        self._committed: Offsets = {}

    def introduced(self, splits: list[Split]) -> list[Split]:
        """The same, the first with the order to tell us the query's name, while it is not known."""
        if self._group is not None or not splits:
            return splits
        self._introduced_by = splits[0].at
        return [replace(splits[0], introduction=self._introduction), *splits[1:]]

    def reached(self, offsets: Offsets) -> None:
        """Everything before these offsets is done."""
        if offsets == self._committed:
            return
        try:
            if self._group is None:
                self._group = self._look_for_group()
            if self._group is None:
                return
            changed = {at: offset for at, offset in offsets.items() if self._committed.get(at) != offset}
            commit_offsets(self._cluster, self._group, changed, deadline_s=COMMIT_DEADLINE_S)
        except _FAILURES as error:
            _log.warning("progress was not committed to a consumer group: %s", error)
        self._committed = dict(offsets)

    def _look_for_group(self) -> str | None:
        if self._introduced_by is None:
            return None
        at, self._introduced_by = self._introduced_by, None
        for group in _groups(self._cluster, self._introduction.group_prefix):
            found = committed(self._cluster, group, [at]).get(at)
            if found is not None and found[1] == self._introduction.token:
                return group
        return None


def introduce(cluster: Cluster, split: Split, query: str) -> None:
    """In a task: commit where the batch begins, with the token that the stream's reader looks for."""
    if split.introduction is None:
        return
    group = f"{split.introduction.group_prefix}-{query}"
    try:
        commit_offsets(
            cluster,
            group,
            {split.at: split.start},
            note=split.introduction.token,
            deadline_s=COMMIT_DEADLINE_S,
        )
    except _FAILURES as error:
        _log.warning("progress was not committed to consumer group %s: %s", group, error)


def _groups(cluster: Cluster, prefix: str) -> Iterator[str]:
    for node_id in cluster.brokers():
        reply: ListGroupsResponse = cluster.ask_broker(node_id, ApiKey.LIST_GROUPS, ListGroupsRequest())
        if reply.error_code != ErrorCode.NONE:
            raise BrokerRefused(f"consumer groups of broker {node_id}", reply.error_code)
        yield from (each.group_id for each in reply.groups if each.group_id.startswith(f"{prefix}-"))
