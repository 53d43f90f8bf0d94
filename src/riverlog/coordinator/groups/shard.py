"""One shard of the group coordinator: all groups of one partition of `__consumer_offsets`.

Composes the offsets with the kinds of groups and sends each record, timer and change of the cluster where it
belongs. It decides only what concerns all kinds, which is who may be deleted. A group id belongs to one kind
at a time; the kinds see to that.
"""

import logging
from collections.abc import Callable, Iterable

from riverlog.coordinator.formats.formats import (
    GROUP_FORMATS,
    GroupRecord,
    UnknownVersion,
    decode_key,
    decode_value,
    kind_of,
)
from riverlog.coordinator.groups.classic.groups import ClassicGroups
from riverlog.coordinator.groups.consumer.classic_members import ClassicMembers
from riverlog.coordinator.groups.consumer.groups import ConsumerGroups
from riverlog.coordinator.groups.kinds import SIMPLE_GROUP, Group, GroupKind
from riverlog.coordinator.groups.offsets.offsets import OffsetRules, Offsets
from riverlog.coordinator.runtime.effects import NOTHING, Effects, FollowUp, Reply, TimerKey, Token, reply
from riverlog.metadata.delta import ImageDelta
from riverlog.metadata.image import ClusterImage
from riverlog.model.config.group_config import GroupConfig
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerIdAndEpoch
from riverlog.wire.codec import MalformedMessage

_OFFSET_COMMITS = (GroupRecord.OFFSET_COMMIT.to_bytes(2), GroupRecord.OFFSET_COMMIT_V0.to_bytes(2))

_logger = logging.getLogger(__name__)


class GroupShard:
    """`image` is the cluster as the latest decision saw it."""

    def __init__(self, config: GroupConfig, image: ClusterImage) -> None:
        self.config = config
        self.image = image
        self.offsets = Offsets(self, OffsetRules.of(config))
        self.classic = ClassicGroups(config)
        self.consumer = ConsumerGroups(self)
        self.classic.host = ClassicMembers(self.consumer)
        # Kinds of groups, in the order in which a group id is looked up.
        self.kinds = self._make_kinds()
        self._kind_of_record: dict[GroupRecord, GroupKind] = {
            record: kind for kind in self.kinds for record in kind.records
        }

    def _make_kinds(self) -> tuple[GroupKind, ...]:
        return (self.classic, self.consumer)

    def group(self, group_id: str) -> Group | None:
        """The group, if there is one: with members, or with committed offsets alone."""
        for kind in self.kinds:
            group = kind.get(group_id)
            if group is not None:
                return group
        return SIMPLE_GROUP if self.offsets.has_any(group_id) else None

    def group_ids(self) -> set[str]:
        ids = set(self.offsets.table.group_ids())
        for kind in self.kinds:
            ids.update(kind.group_ids())
        return ids

    def decide_deletion(self, group_id: str, token: Token[ErrorCode]) -> Effects:
        """An administrator deletes a group, which must be empty, with its offsets."""
        group = self.group(group_id)
        if group is None:
            return reply(token, ErrorCode.GROUP_ID_NOT_FOUND)
        if not group.is_empty:
            return reply(token, ErrorCode.NON_EMPTY_GROUP)
        records = (*self.offsets.tombstones(group_id), *group.tombstones())
        return Effects(records, (Reply(token, ErrorCode.NONE),), is_atomic=False)

    def replay(
        self,
        key: bytes,
        value: bytes | None,
        *,
        offset: int,
        timestamp_ms: int,
        producer: ProducerIdAndEpoch | None,
    ) -> None:
        try:
            if key.startswith(_OFFSET_COMMITS):
                self.offsets.replay(key, value, offset=offset, producer=producer)
                return
            number = kind_of(key)
            if number is None or number not in GROUP_FORMATS:
                _logger.warning("a record of unknown kind %s at offset %d is passed over", number, offset)
                return
            record = GroupRecord(number)
            kind = self._kind_of_record.get(record)
            if kind is not None:
                key_class, value_class = GROUP_FORMATS[record]
                decoded = None if value is None else decode_value(value_class, value)
                kind.replay(
                    record, decode_key(key_class, key), decoded, offset=offset, timestamp_ms=timestamp_ms
                )
        except (MalformedMessage, UnknownVersion) as error:
            _logger.warning("a record at offset %d cannot be read and is passed over: %s", offset, error)

    def replay_end_marker(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
        self.offsets.replay_end_marker(producer, committed=committed)

    def on_loaded(self, now_ms: int, *, may_have_lost: bool) -> Effects:
        return _together([self.offsets.on_loaded(now_ms), *(kind.on_loaded(now_ms) for kind in self.kinds)])

    def on_committed(self, follow_up: FollowUp, error: ErrorCode | None, now_ms: int) -> Effects:
        for kind in self.kinds:
            effects = kind.on_committed(follow_up, error, now_ms)
            if effects is not None:
                return effects
        raise AssertionError(f"no part of the shard owns the follow-up {follow_up!r}")

    def on_timer(self, key: TimerKey, now_ms: int) -> Effects:
        owners: Iterable[Callable[[TimerKey, int], Effects | None]] = (
            self.offsets.on_timer,
            *(kind.on_timer for kind in self.kinds),
        )
        for on_timer in owners:
            effects = on_timer(key, now_ms)
            if effects is not None:
                return effects
        raise AssertionError(f"no part of the shard owns the timer {key!r}")

    def on_image(self, delta: ImageDelta, now_ms: int) -> Effects:
        """The cluster has changed: topics came, went or grew, or settings are others."""
        self.image = delta.new
        deleted = frozenset(delta.deleted)
        return _together(
            [
                self.offsets.decide_topics_deleted(deleted) if deleted else NOTHING,
                *(kind.on_image(delta, now_ms) for kind in self.kinds),
            ]
        )


def _together(effects: Iterable[Effects]) -> Effects:
    total = NOTHING
    for each in effects:
        if each is not NOTHING:
            total = total + each
    return total
