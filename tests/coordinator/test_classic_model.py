"""Whatever members do, and whenever the broker restarts or cannot write: a group agrees with a simple model.

One assignment per member and generation, handed in by one leader; whoever is not of the generation is fenced;
generations only rise; and what the group knows between rebalances is what a replay of its log tells.
"""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from riverlog.coordinator.groups.classic.groups import ClassicGroups
from riverlog.coordinator.groups.classic.requests import Joined, Leaver, MemberProtocol, Protocols, Synced
from riverlog.coordinator.groups.classic.states import State
from riverlog.coordinator.groups.kinds import Claim
from riverlog.model.config.group_config import GroupConfig
from riverlog.model.errors import ErrorCode
from tests.coordinator.classic_driver import GROUP, Driver, replay_record

PROTOCOLS = st.sampled_from(
    [
        (MemberProtocol("a", b"1"), MemberProtocol("b", b"2")),
        (MemberProtocol("b", b"2"), MemberProtocol("a", b"3")),
        (MemberProtocol("a", b"4"),),
    ]
)
CLIENTS = st.integers(0, 3)


class Client:
    """What a real client would remember: its id, its generation, what it waits for."""

    def __init__(self, instance_id: str | None) -> None:
        self.instance_id = instance_id
        self.member_id = ""
        self.generation = -1
        self.is_leader = False
        self.joining: int | None = None
        self.syncing: int | None = None


class GroupModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver(GroupConfig(initial_rebalance_delay_ms=1_000))
        # The last of them is static.
        self.clients = [Client(None), Client(None), Client(None), Client("i")]
        self.told: dict[tuple[int, str], bytes] = {}
        self.leaders: dict[int, str] = {}
        self.generation = 0

    def collect(self) -> None:
        """Hand the clients the answers that have come."""
        for client in self.clients:
            if client.joining in self.driver.answers:
                self.on_joined(client, self.driver.answers.pop(client.joining))
            if client.syncing in self.driver.answers:
                self.on_synced(client, self.driver.answers.pop(client.syncing))

    def on_joined(self, client: Client, answer: Joined | ErrorCode) -> None:
        client.joining = None
        if isinstance(answer, ErrorCode):
            return
        if answer.error is ErrorCode.MEMBER_ID_REQUIRED:
            client.member_id = answer.member_id
        elif answer.error is ErrorCode.NONE:
            client.member_id, client.generation = answer.member_id, answer.generation
            client.is_leader = bool(answer.members) and not answer.is_assigned
            if answer.members and not answer.is_assigned:
                # A generation has one leader; a retry may tell it twice.
                assert self.leaders.setdefault(answer.generation, answer.member_id) == answer.member_id
                assert client.member_id in {member.member_id for member in answer.members}
        else:
            client.member_id, client.generation = "", -1

    def on_synced(self, client: Client, answer: Synced | ErrorCode) -> None:
        client.syncing = None
        if isinstance(answer, Synced) and answer.error is ErrorCode.NONE:
            key = (client.generation, client.instance_id or client.member_id)
            assert self.told.setdefault(key, answer.assignment) == answer.assignment

    @rule(who=CLIENTS, protocols=PROTOCOLS)
    def joins(self, who: int, protocols: Protocols) -> None:
        client = self.clients[who]
        if client.joining is None:
            client.syncing = None
            client.joining = self.driver.send_join(
                client.member_id, protocols, instance_id=client.instance_id
            )
            self.collect()

    @rule(who=CLIENTS)
    @precondition(lambda self: self.driver.write_error is None)
    def the_group_settles(self, who: int) -> None:
        """Long histories are rare otherwise: clients join and sync as they should."""
        clients = (*range(who), 3)
        for _ in range(4):
            for each in clients:
                self.joins(each, (MemberProtocol("a", b"1"), MemberProtocol("b", b"2")))
            self.time_passes(1_000)
            for each in clients:
                self.syncs(each)

    @rule(who=CLIENTS)
    def restarts_without_leaving(self, who: int) -> None:
        client = self.clients[who]
        self.clients[who] = Client(client.instance_id)

    @rule(who=CLIENTS)
    def syncs(self, who: int) -> None:
        client = self.clients[who]
        if client.joining is None and client.syncing is None and client.generation >= 0:
            group = self.driver.groups.get(GROUP)
            members = [] if group is None else list(group.members)
            given = {each: f"{client.generation}/{at}".encode() for at, each in enumerate(members)}
            client.syncing = self.driver.send_sync(
                client.member_id,
                client.generation,
                instance_id=client.instance_id,
                assignments=given if client.is_leader else {},
            )
            self.collect()

    @rule(who=CLIENTS, behind=st.integers(0, 2))
    def a_stale_generation_is_fenced(self, who: int, behind: int) -> None:
        client = self.clients[who]
        group = self.driver.groups.get(GROUP)
        generation = client.generation - behind
        error = self.driver.beat(client.member_id, generation, client.instance_id)
        is_member = group is not None and client.member_id in group.members
        if group is None or not is_member or generation != group.generation:
            assert error not in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)
            refusal = (
                None
                if group is None
                else group.refuse_commit(Claim(client.member_id, client.instance_id, generation))
            )
            is_outside = generation < 0 and group is not None and group.is_empty
            assert group is None or is_outside or refusal is not None
        else:
            assert error in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)

    @rule(who=CLIENTS)
    def leaves(self, who: int) -> None:
        client = self.clients[who]
        self.driver.leave(Leaver(client.member_id, client.instance_id))
        self.collect()
        if client.joining is None:
            client.member_id, client.generation = "", -1

    @rule(ms=st.sampled_from([0, 500, 1_000, 4_000, 10_000, 60_000, 400_000]))
    def time_passes(self, ms: int) -> None:
        self.driver.pass_time(ms)
        self.collect()

    @rule()
    def the_broker_restarts(self) -> None:
        self.driver.load()
        for client in self.clients:
            client.joining = client.syncing = None
        live = self.driver.groups.get(GROUP)
        self.generation = 0 if live is None else live.generation
        self.leaders = {at: who for at, who in self.leaders.items() if at <= self.generation}
        self.told = {key: given for key, given in self.told.items() if key[0] <= self.generation}

    @rule()
    @precondition(lambda self: self.driver.write_error is None)
    def the_log_fails(self) -> None:
        self.driver.write_error = ErrorCode.COORDINATOR_NOT_AVAILABLE

    @rule()
    @precondition(lambda self: self.driver.write_error is not None)
    def the_log_recovers(self) -> None:
        self.driver.write_error = None

    @invariant()
    def live_state_is_a_replay(self) -> None:
        live = self.driver.groups.get(GROUP)
        replayed = ClassicGroups(self.driver.config)
        for record in self.driver.log:
            replay_record(replayed, record)
        other = replayed.get(GROUP)
        assert (live is None) == (other is None)
        if live is None or other is None:
            return
        assert live.stored == other.stored
        assert live.generation >= self.generation
        self.generation = live.generation
        if live.state in (State.STABLE, State.EMPTY):
            assert _hard(live) == _hard(other)

    @invariant()
    def nothing_waits_without_need(self) -> None:
        live = self.driver.groups.get(GROUP)
        if live is None:
            return
        for member in live.members.values():
            assert member.joining is None or live.state is State.PREPARING_REBALANCE
            assert member.syncing is None or live.state is State.COMPLETING_REBALANCE
        assert live.leader in live.members or not live.members
        assert {each: who for each, who in live.instances.items() if who in live.members} == live.instances


def _hard(group: Any) -> Any:
    members = [(each.member_id, each.instance_id, each.assignment) for each in group.members.values()]
    return (
        group.state,
        group.generation,
        group.protocol_type,
        group.protocol,
        group.leader,
        members,
        group.subscribed,
    )


TestGroupModel = GroupModel.TestCase
TestGroupModel.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
