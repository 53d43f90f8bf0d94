"""Whatever happens to a group of the consumer protocol (I12, I13).

At every moment a partition has one owner at most and the live group is what a replay of the log gives. When
things calm down, every partition has an owner and, where all read the same, the shares differ by one at most.
"""

from itertools import combinations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.coordinator.consumer_clients import Client, Coordination
from tests.virtual_time import elapse, run_virtually

WHO = st.integers(0, 3)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("beat"), WHO),
        st.tuples(st.just("beat"), WHO),
        st.tuples(st.just("full beat"), WHO),
        st.tuples(st.just("reply lost"), WHO),
        st.tuples(st.just("subscribe"), WHO, st.sets(st.sampled_from(["orders", "payments"]))),
        st.tuples(st.just("leave"), WHO),
        st.tuples(st.just("crash"), WHO),
        st.tuples(st.just("come back"), WHO),
        st.tuples(st.just("pause"), st.integers(2, 3)),
        st.tuples(st.just("replace"), st.integers(2, 3)),
        st.tuples(st.just("wait"), st.sampled_from([1, 20, 50])),
        st.tuples(st.just("grow"), st.sampled_from(["orders", "payments"])),
        st.tuples(st.just("remake"), st.sampled_from(["orders", "payments"])),
        st.tuples(st.just("restart")),
    ),
    max_size=40,
)


_SESSION_S = 50


class Run:
    def __init__(self, assignor: str) -> None:
        self.coordination = Coordination(orders=3, payments=2)
        self.clients = [
            Client(self.coordination, f"member-{number}", "orders", "payments", assignor=assignor, **static)
            for number, static in enumerate(({}, {}, {"instance_id": "two"}, {"instance_id": "three"}))
        ]

    async def step(self, step: tuple[Any, ...]) -> None:
        match step:
            case ("beat", who):
                await self.clients[who].beat()
            case ("full beat", who):
                await self.clients[who].beat(full=True)
            case ("reply lost", who) if self.clients[who].is_member:
                await self.clients[who].beat(lost_reply=True)
            case ("subscribe", who, topics):
                self.clients[who].topics = tuple(topics)
                await self.clients[who].beat(full=True)
            case ("leave", who):
                await self.clients[who].leave()
            case ("crash", who):
                self.clients[who].forget()
            case ("come back", who):
                # The same process under the same id, which has lost what it knew.
                self.clients[who].forget()
                await self.clients[who].beat()
            case ("pause", who) if self.clients[who].is_member:
                await self.clients[who].pause()
            case ("replace", who):
                # Another process under the same name, while the old one may still count as a member.
                self.clients[who].begin_anew()
                await self.clients[who].beat()
            case ("wait", seconds):
                await elapse(seconds)
            case ("grow", topic):
                self.coordination.show(**{topic: min(self.coordination.topics[topic] + 1, 6)})
            case ("remake", topic):
                self.coordination.remake(topic)
            case ("restart",):
                await self.coordination.restart()

    async def check(self) -> None:
        group = await self.coordination.group()
        replayed = await self.coordination.replayed()
        assert (group and vars(group)) == (replayed and vars(replayed))
        if group is None:
            return
        # Who was put out and does not know it yet can commit nothing any more.
        present = [each for each in self.clients if each.is_member and each.member_id in group.members]
        for one, other in combinations(present, 2):
            assert not one.owned & other.owned, "two owners of one partition"
        held = [
            (topic, index)
            for member in group.members.values()
            for partitions in (member.assigned, member.revoking)
            for topic, indexes in partitions.items()
            for index in indexes
        ]
        assert len(held) == len(set(held)) == len(group.owners)

    async def calm_down(self) -> None:
        """Everybody reads the same, beats in turn, and those who crashed time out.

        A name is given to another process only when the session of the one before it has ended.
        """
        await elapse(_SESSION_S)
        for client in self.clients:
            client.topics = ("orders", "payments")
        for _ in range(12):
            for client in self.clients:
                await client.beat(full=True)
                await self.check()
            await elapse(1)

    def check_shares(self) -> None:
        owned = [partition for client in self.clients for partition in client.owned]
        image = self.coordination.cluster.image
        assert sorted(owned) == sorted(
            (image.topics[name].topic_id, index)
            for name in ("orders", "payments")
            for index in range(len(image.topics[name].partitions))
        )


@settings(max_examples=40, deadline=None)
@given(STEPS, st.sampled_from(["uniform", "range"]))
def test_one_owner_at_all_times_and_everything_owned_in_the_end(
    steps: list[tuple[Any, ...]], assignor: str
) -> None:
    async def run() -> None:
        playing = Run(assignor)
        for step in steps:
            await playing.step(step)
            await playing.check()
        await playing.calm_down()
        playing.check_shares()
        if assignor == "uniform":
            shares = [len(client.owned) for client in playing.clients]
            assert max(shares) - min(shares) <= 1
        await playing.coordination.groups.close()

    run_virtually(run)
