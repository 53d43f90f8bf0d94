"""Offsets that are committed for groups: an acknowledged one never moves back unasked (I13); one that a
transaction commits counts exactly if the transaction is committed (I14)."""

from riverlog.testing.simulation.clients.process import SimulatedClient, Surroundings
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from riverlog.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)


class CommittedOffsets:
    """What the members of one run have asked to be committed, and what was acknowledged."""

    def __init__(self) -> None:
        self._asked: dict[tuple[str, str, int], int] = {}
        self._acknowledged: dict[tuple[str, str, int], int] = {}
        self.losses = 0
        """Power cuts that may have taken what was acknowledged, or is about to be."""

    def next(self, group: str, topic: str, index: int) -> int:
        key = (group, topic, index)
        self._asked[key] = self._asked.get(key, 0) + 1
        return self._asked[key]

    def acknowledge(self, group: str, topic: str, index: int, offset: int) -> None:
        key = (group, topic, index)
        self._acknowledged[key] = max(self._acknowledged.get(key, -1), offset)

    def expected(self, group: str, topic: str, index: int) -> tuple[int, int]:
        """The least and the most that a fetch may answer."""
        key = (group, topic, index)
        return self._acknowledged.get(key, -1), self._asked.get(key, -1)

    def forget(self) -> None:
        """A power cut took what was not synced."""
        self._acknowledged.clear()
        self.losses += 1


class TransactionalOffsets:
    """Of one transactional id, whose group nobody else commits for, over all lives of its producer."""

    def __init__(self) -> None:
        self.last = 0
        """Each transaction commits an offset of its own, larger than those before."""
        self.counts = -1
        """Of the last transaction that is known to be committed."""
        self._may_count: set[int] = {-1}
        """Of those whose commit was asked for, and from before a power cut."""
        self.losses = 0

    def ask_to_commit(self, offset: int) -> None:
        self._may_count.add(offset)

    def committed(self, offset: int) -> None:
        self.counts = max(self.counts, offset)

    def forget(self) -> None:
        """A power cut took what was not synced, also that a transaction was aborted."""
        self._may_count.update(range(self.last + 1))
        self.counts = -1
        self.losses += 1

    def why_not(self, told: int, least: int) -> str | None:
        """`least` counted when the question was sent."""
        if told not in self._may_count:
            return f"{told} counts, of a transaction that nobody asked to commit"
        return f"{told} counts, {least} was committed" if told < least else None


class Committing(SimulatedClient):
    """A member that commits offsets and asks for them."""

    def __init__(self, around: Surroundings, group: str, topic: str, offsets: CommittedOffsets) -> None:
        super().__init__(around)
        self.group, self.topic = group, topic
        self._offsets = offsets

    async def commit(self, index: int, member_id: str, epoch: int, newest: int = -1) -> int:
        """The error code. Offsets of one partition only ever rise, whoever commits them. `newest` is the
        newest epoch that somebody has been told of: a claim of an older one must be refused (I12)."""
        offset, losses = self._offsets.next(self.group, self.topic, index), self._offsets.losses
        piece = OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
        reply = await self.ask(
            ApiKey.OFFSET_COMMIT,
            9,
            OffsetCommitRequest(
                group_id=self.group,
                generation_id_or_member_epoch=epoch,
                member_id=member_id,
                topics=[OffsetCommitRequestTopic(name=self.topic, partitions=[piece])],
            ),
        )
        code = int(reply.topics[0].partitions[0].error_code)
        if code:
            self.refused("commit offset", code)
        elif epoch < newest and losses == self._offsets.losses:
            told = f"a commit of {epoch} is let through, {newest} has begun"
            raise self.violated("I12", f"{self.group} {self.topic}-{index}: {told}")
        else:
            if losses == self._offsets.losses:  # Else the answer may be older than the power cut.
                self._offsets.acknowledge(self.group, self.topic, index, offset)
            self.done("committed an offset", at=f"{self.topic}-{index}", offset=offset)
        return code

    async def check_committed(self, index: int) -> None:
        least, _ = self._offsets.expected(self.group, self.topic, index)
        topics = [OffsetFetchRequestTopics(name=self.topic, partition_indexes=[index])]
        reply = await self.ask(
            ApiKey.OFFSET_FETCH,
            8,
            OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=self.group, topics=topics)]),
        )
        [group] = reply.groups
        if group.error_code:
            self.refused("fetch offset", group.error_code)
            return
        [answer] = group.topics[0].partitions
        _, most = self._offsets.expected(self.group, self.topic, index)
        if not answer.error_code and not least <= answer.committed_offset <= most:
            told = f"{answer.committed_offset} is told, {least} was acknowledged, {most} asked for"
            raise self.violated("I13", f"{self.group} {self.topic}-{index}: {told}")
        self.done("fetched an offset", at=f"{self.topic}-{index}", offset=answer.committed_offset)
