"""A group as it will be once the records of a decision are written."""

from riverlog.coordinator.groups.consumer import records
from riverlog.coordinator.groups.consumer.group import ConsumerGroup
from riverlog.coordinator.groups.consumer.member import ConsumerMember
from riverlog.coordinator.groups.consumer.records import GroupRecordWrite
from riverlog.coordinator.runtime.effects import CoordinatorRecord


class GroupChange:
    """`group` is the group itself until something is written, and a copy of it from then on."""

    def __init__(self, group: ConsumerGroup, *preceding: CoordinatorRecord) -> None:
        self.group = group
        self._written: list[CoordinatorRecord] = list(preceding)
        self._is_copied = False

    @property
    def records(self) -> tuple[CoordinatorRecord, ...]:
        return tuple(self._written)

    def write(self, *written: GroupRecordWrite) -> None:
        if written and not self._is_copied:
            self.group = self.group.copy()
            self._is_copied = True
        for each in written:
            self.group.replay(each.key, each.value)
            self._written.append(each.encoded())

    def write_subscription(self, member: ConsumerMember) -> None:
        self.write(records.subscription(self.group.group_id, member))

    def write_assignment(self, member: ConsumerMember) -> None:
        self.write(records.current_assignment(self.group.group_id, member))

    def bump_epoch(self, metadata_hash: int) -> None:
        group = self.group
        self.write(records.group_epoch(group.group_id, group.epoch + 1, metadata_hash))

    def remove_member(self, member_id: str) -> None:
        """And the expression that only this member asked for."""
        member = self.group.members[member_id]
        self.write(*records.member_tombstones(self.group.group_id, member_id))
        self.forget_regex(member.regex)

    def forget_regex(self, expression: str) -> None:
        """Unless a member still subscribes by it."""
        group = self.group
        if expression in group.regexes and expression not in group.wanted_regexes():
            self.write(records.regex(group.group_id, expression, None))
