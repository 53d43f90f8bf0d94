"""A stream's progress, committed to a consumer group so that ordinary tools show its lag. Never read back.

The group is `kafka.group.id`, or the prefix and the query's name or id. Spark does not tell the process that
plans a stream which query that is; it tells the tasks. So while the group is not known, the first task of a
batch commits the position that its batch begins at, which is finished, together with a token of this
stream; after the batch the group that bears the token is ours. Progress that cannot be committed is worth a
warning only: it is nobody's position.

No batch waits for a commit: a thread with connections of its own makes it, and skips what has been overtaken.
Who ends waits for the last one, for a while.

What depends on the group's name is done when it is known: see `topic_ids`.
"""

import logging
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from riverlog.client.cluster import BrokerRefused, Cluster
from riverlog.client.offsets import commit_offsets, committed
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.spark.source.places import Offsets
from riverlog.spark.source.plan import Introduction, Split, Standing
from riverlog.spark.source.topic_ids import COMMIT_DEADLINE_S, FAILURES, SUFFIX, check_topics, keep_topic_ids
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse

_KEEP_AGAIN_S: Final = 3600.0
"""A group without members forgets what was committed long ago."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Progress:
    offsets: Offsets
    topic_ids: Mapping[str, UUID | None]


class ProgressGroup:
    def __init__(self, cluster: Cluster, group: str | None, prefix: str, token: str) -> None:
        self._cluster = cluster
        self._behind = Cluster(cluster.settings)
        """The thread's own: a `Cluster` has one user."""
        self._thread = ThreadPoolExecutor(1, "riverlog-progress")
        self._newest: _Progress | None = None
        self._coming: Future[None] | None = None
        self._group = group
        self._prefix = prefix
        self._token = token
        self._introduced_by: TopicPartition | None = None
        self._is_checked = False
        self._committed: Offsets = {}
        self._kept_ids: dict[str, UUID | None] = {}
        self._kept_at = 0.0

    def check(self, standing: Standing) -> None:
        """Before the first batch, where the group is known: a task does it otherwise."""
        if self._group is not None and not self._is_checked:
            check_topics(self._cluster, self._group, standing)
            self._is_checked = True

    def introduced(self, splits: list[Split], standing: Standing) -> list[Split]:
        """The same, the first with the order to tell us the query's name, while it is not known."""
        if self._group is not None or not splits:
            return splits
        self._introduced_by = splits[0].at
        introduction = Introduction(self._token, self._prefix, standing)
        return [replace(splits[0], introduction=introduction), *splits[1:]]

    def reached(self, offsets: Offsets, topic_ids: Mapping[str, UUID | None]) -> None:
        """Everything before these offsets is done."""
        if self._newest is not None and offsets == self._newest.offsets:
            return
        self._newest = _Progress(dict(offsets), dict(topic_ids))
        self._coming = self._thread.submit(self._commit_newest)

    def flush(self) -> None:
        """Return when what was reached is committed, or could not be in time."""
        if self._coming is not None:
            wait([self._coming], COMMIT_DEADLINE_S)

    def close(self) -> None:
        self.flush()
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._behind.close()

    # In the thread.

    def _commit_newest(self) -> None:
        progress = self._newest
        if progress is None or progress.offsets == self._committed:
            return
        offsets = progress.offsets
        try:
            if self._group is None:
                self._group = self._look_for_group()
                self._is_checked = self._group is not None
            if self._group is None:
                return
            changed = {at: offset for at, offset in offsets.items() if self._committed.get(at) != offset}
            commit_offsets(self._behind, self._group, changed, deadline_s=COMMIT_DEADLINE_S)
            self._keep(self._group, progress.topic_ids)
        except FAILURES as error:
            _log.warning("progress was not committed to a consumer group: %s", error)
        self._committed = offsets

    def _keep(self, group: str, topic_ids: Mapping[str, UUID | None]) -> None:
        now = time.monotonic()
        if topic_ids != self._kept_ids or now - self._kept_at > _KEEP_AGAIN_S:
            keep_topic_ids(self._behind, group, topic_ids)
            self._kept_ids, self._kept_at = dict(topic_ids), now

    def _look_for_group(self) -> str | None:
        if self._introduced_by is None:
            return None
        at, self._introduced_by = self._introduced_by, None
        for group in _groups(self._behind, self._prefix):
            found = committed(self._behind, group, [at]).get(at)
            if found is not None and found.note == self._token:
                return group
        return None


def introduce(cluster: Cluster, split: Split, query: str) -> None:
    """In a task: commit where the batch begins, with the token that the stream's reader looks for."""
    if split.introduction is None:
        return
    group = f"{split.introduction.group_prefix}-{query}"
    check_topics(cluster, group, split.introduction.standing)
    note = {split.at: split.introduction.token}
    try:
        commit_offsets(cluster, group, {split.at: split.start}, notes=note, deadline_s=COMMIT_DEADLINE_S)
    except FAILURES as error:
        _log.warning("progress was not committed to consumer group %s: %s", group, error)
    else:
        keep_topic_ids(cluster, group, split.introduction.standing.topic_ids)


def _groups(cluster: Cluster, prefix: str) -> Iterator[str]:
    for node_id in cluster.brokers():
        reply: ListGroupsResponse = cluster.ask_broker(node_id, ApiKey.LIST_GROUPS, ListGroupsRequest())
        if reply.error_code != ErrorCode.NONE:
            raise BrokerRefused(f"consumer groups of broker {node_id}", reply.error_code)
        for group in (each.group_id for each in reply.groups):
            if group.startswith(f"{prefix}-") and not group.endswith(SUFFIX):
                yield group
