"""Members of groups: of classic ones, which share out partitions among themselves, and of KIP-848's.

A classic member joins, syncs and sends heartbeats; the leader gives each partition to one member, in the
order of their ids. Both commit offsets for what they own and ask for them again, and now and then, as a
member that was away for a while, commit under an epoch that is over. Whatever the coordinator says is wrong
makes a member begin anew.
"""

from typing import Any

from riverlog.model.errors import ErrorCode
from riverlog.testing.simulation.clients.connection import Disconnected
from riverlog.testing.simulation.clients.offsets import CommittedOffsets, Committing
from riverlog.testing.simulation.clients.ownership import Ownership
from riverlog.testing.simulation.clients.process import Surroundings
from riverlog.wire.apis import ApiKey
from riverlog.wire.codec import decode, encode
from riverlog.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from riverlog.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from riverlog.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest
from riverlog.wire.messages.heartbeat import HeartbeatRequest
from riverlog.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from riverlog.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from riverlog.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

_GROUP_KEY = 0
_SESSION_MS = 6000
_REBALANCE_MS = 4000
_LEAVE_CHANCE = 0.02
_STALE_CHANCE = 0.1
_LEAVING = -1
_OUT_OF_THE_GROUP = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.GROUP_ID_NOT_FOUND,
)
"""The last after a power cut that has taken the whole group: real ones end with it, and are started again."""


class Member(Committing):
    def __init__(
        self,
        around: Surroundings,
        group: str,
        topic: str,
        partitions: int,
        offsets: CommittedOffsets,
        ownership: Ownership,
        *,
        pause_s: float = 0.25,
    ) -> None:
        super().__init__(around, group, topic, offsets)
        self.partitions = partitions
        self._ownership = ownership
        self._pause_s = pause_s
        self._member_id = ""
        self.looks_first = False
        """Whether it asks where to go on before it commits anything, as consumers do."""
        self._is_found = False
        self.log_life = 0
        """Counts the power cuts, which may take generations back."""
        self._present: tuple[int, int] | None = None
        """Life, and generation or member epoch, that this member was told last."""
        self._passed: tuple[int, int] | None = None
        """Those before, under the same member id."""

    async def operate(self) -> None:
        await self.pause(self._pause_s)
        try:
            if not self._is_found:
                await self._find()
            else:
                await self.take_part()
        except Disconnected:
            self._is_found = False
            raise

    async def take_part(self) -> None:
        raise NotImplementedError

    async def _find(self) -> None:
        request = FindCoordinatorRequest(key_type=_GROUP_KEY, coordinator_keys=[self.group])
        reply = await self.ask(ApiKey.FIND_COORDINATOR, 4, request)
        code = reply.coordinators[0].error_code
        if code:
            self.refused("find coordinator", code)
        else:
            self._routes.go_to(reply.coordinators[0].host, reply.coordinators[0].port)
        self._is_found = not code

    def _enter(self, life: int, epoch: int, whose: str = "") -> None:
        """The coordinator has told of an epoch, of the group or of the member `whose`."""
        if self._present != (life, epoch):
            self._passed, self._present = self._present, (life, epoch)
        self._ownership.told(self.group, life, epoch, whose)

    def _forget_member(self) -> None:
        self._member_id, self._present, self._passed = "", None, None

    async def _use(self, owned: list[int], epoch: int, whose: str = "") -> int:
        """Commit for one of the partitions that are owned, and look at another. Epochs are of the group, or
        of the member `whose`."""
        code, life = 0, self.log_life
        if owned:
            newest = self._ownership.newest(self.group, life, whose)
            code = await self.commit(self._chance.choice(owned), self._member_id, epoch, newest)
        if self._passed is not None and self._chance.random() < _STALE_CHANCE:
            await self._claim_what_is_over(owned, whose)
        if self._chance.random() < 0.3:
            await self.check_committed(self._chance.randrange(self.partitions))
        return code

    async def _claim_what_is_over(self, owned: list[int], whose: str) -> None:
        assert self._passed is not None
        life, epoch = self._passed
        if life == self.log_life:
            index = self._chance.choice(owned) if owned else 0
            newest = self._ownership.newest(self.group, life, whose)
            if await self.commit(index, self._member_id, epoch, newest):
                self._counts["stale commits refused"] += 1


class ClassicMember(Member):
    kind = "classic member"

    def __init__(self, around: Surroundings, *arguments: Any, **options: Any) -> None:
        super().__init__(around, *arguments, **options)
        self._generation: int | None = None
        self._owned: list[int] = []

    async def take_part(self) -> None:
        if self._generation is None:
            await self._join()
        elif self._chance.random() < _LEAVE_CHANCE:
            await self._leave()
        else:
            code = await self._heartbeat() or await self._use(self._owned, self._generation)
            if code:
                self._on_error(code)

    async def _join(self) -> None:
        subscription = encode(ConsumerProtocolSubscription(topics=[self.topic]), 1)
        reply = await self.ask(
            ApiKey.JOIN_GROUP,
            7,
            JoinGroupRequest(
                group_id=self.group,
                session_timeout_ms=_SESSION_MS,
                rebalance_timeout_ms=_REBALANCE_MS,
                member_id=self._member_id,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="ours", metadata=b"\0\1" + subscription)],
            ),
            timeout_s=_REBALANCE_MS / 1000 + 3,
        )
        if reply.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = reply.member_id
            return
        if reply.error_code:
            self._on_error(reply.error_code)
            return
        self._member_id = reply.member_id
        self.done("joined", generation=reply.generation_id, members=len(reply.members))
        await self._sync(reply)

    async def _sync(self, joined: Any) -> None:
        life = self.log_life
        reply = await self.ask(
            ApiKey.SYNC_GROUP,
            3,
            SyncGroupRequest(
                group_id=self.group,
                generation_id=joined.generation_id,
                member_id=self._member_id,
                assignments=self._shared_out(joined) if joined.leader == self._member_id else [],
            ),
            timeout_s=_REBALANCE_MS / 1000 + 3,
        )
        if reply.error_code:
            self._on_error(reply.error_code)
            return
        assignment = bytes(reply.assignment)
        if assignment:
            told, _ = decode(ConsumerProtocolAssignment, 1, assignment, 2)
            self._owned = [index for each in told.assigned_partitions for index in each.partitions]
        else:
            self._owned = []
        self._generation = joined.generation_id
        self._enter(life, self._generation)
        self._ownership.assigned(self.group, life, self._generation, self._member_id, self._owned)
        self.done("synced", generation=self._generation, owned=self._owned)
        if self.looks_first:
            for index in self._owned:
                await self.check_committed(index)

    def _shared_out(self, joined: Any) -> list[SyncGroupRequestAssignment]:
        ids = sorted(each.member_id for each in joined.members)
        shares: dict[str, list[int]] = {each: [] for each in ids}
        for index in range(self.partitions):
            shares[ids[index % len(ids)]].append(index)
        return [
            SyncGroupRequestAssignment(
                member_id=each,
                assignment=b"\0\1"
                + encode(
                    ConsumerProtocolAssignment(
                        assigned_partitions=[TopicPartition(topic=self.topic, partitions=share)]
                    ),
                    1,
                ),
            )
            for each, share in shares.items()
        ]

    async def _heartbeat(self) -> int:
        assert self._generation is not None
        reply = await self.ask(
            ApiKey.HEARTBEAT,
            3,
            HeartbeatRequest(group_id=self.group, generation_id=self._generation, member_id=self._member_id),
        )
        if reply.error_code:
            self.refused("heartbeat", reply.error_code)
        else:
            self.done("heartbeat")
        return int(reply.error_code)

    async def _leave(self) -> None:
        member = MemberIdentity(member_id=self._member_id)
        reply = await self.ask(
            ApiKey.LEAVE_GROUP, 3, LeaveGroupRequest(group_id=self.group, members=[member])
        )
        self._generation, self._owned = None, []
        self._forget_member()
        if not reply.error_code:
            self.done("left")

    def _on_error(self, code: int) -> None:
        self.refused(self.kind, code)
        self._generation, self._owned = None, []
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self._forget_member()
        if code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE):
            self._is_found = False


class ConsumerMember(Member):
    kind = "consumer member"

    def __init__(self, around: Surroundings, *arguments: Any, **options: Any) -> None:
        super().__init__(around, *arguments, **options)
        self._epoch = 0
        self._owned: dict[Any, list[int]] = {}
        self._is_told = False

    async def take_part(self) -> None:
        if self._epoch > 0 and self._chance.random() < _LEAVE_CHANCE:
            await self._beat(_LEAVING)
            self._begin_anew()
            return
        if not await self._beat(self._epoch):
            return
        owned = [index for indexes in self._owned.values() for index in indexes]
        code = await self._use(owned, self._epoch, self._member_id)
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._begin_anew()

    async def _beat(self, epoch: int) -> bool:
        is_joining, life = epoch == 0, self.log_life
        if is_joining and not self._member_id:
            self._member_id = f"{self.name}-{self._chance.getrandbits(32):08x}"
        owned = [
            ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in self._owned.items()
        ]
        reply = await self.ask(
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            1,
            ConsumerGroupHeartbeatRequest(
                group_id=self.group,
                member_id=self._member_id,
                member_epoch=epoch,
                rebalance_timeout_ms=_REBALANCE_MS if is_joining else -1,
                subscribed_topic_names=[self.topic] if is_joining else None,
                topic_partitions=[] if is_joining else owned if self._is_told else None,
            ),
        )
        self._is_told = False
        if reply.error_code:
            self.refused(self.kind, reply.error_code)
            if reply.error_code in _OUT_OF_THE_GROUP:
                self._begin_anew()
            elif reply.error_code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE):
                self._is_found = False
            return False
        self._epoch = reply.member_epoch
        self._enter(life, self._epoch, self._member_id)
        if reply.assignment is not None:
            self._owned = {each.topic_id: list(each.partitions) for each in reply.assignment.topic_partitions}
            self._is_told = True
        self.done("heartbeat", epoch=reply.member_epoch)
        return epoch != _LEAVING

    def _begin_anew(self) -> None:
        self._epoch, self._owned = 0, {}
        self._forget_member()
