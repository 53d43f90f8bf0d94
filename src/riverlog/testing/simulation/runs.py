"""One run of a case: form, chaos, heal, quiet; and what came of it.

At the end everything heals, and the run goes on until each client has made progress again and everything is
done with: a broker that does not come back, a client that is never answered, a task or a timer that is left
over is a violation like any other.
"""

import gc
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import IO, Any, Final

from riverlog.model.errors import StorageError
from riverlog.model.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from riverlog.testing.simulation import faults
from riverlog.testing.simulation.cases import FORM_S, TOPICS, Case
from riverlog.testing.simulation.casts import Cast, topics_of
from riverlog.testing.simulation.checks.healed import HealedCluster
from riverlog.testing.simulation.checks.ledger import PartitionLedger
from riverlog.testing.simulation.clients.admins import Admin
from riverlog.testing.simulation.clients.operators import Operator
from riverlog.testing.simulation.clients.process import SimulatedClient
from riverlog.testing.simulation.clients.transactors import TransactorPlan
from riverlog.testing.simulation.coverage import Coverage
from riverlog.testing.simulation.machine.links import LinkQuality
from riverlog.testing.simulation.nodes import SimulatedNode, State
from riverlog.testing.simulation.violations import Violation
from riverlog.testing.simulation.world import World

PROGRESS_S: Final = 60.0
_WRITABLE_S: Final = 5.0
"""How much longer than a session lasts it may take until every partition can be written."""
_LOOK_S: Final = 0.2
_QUIET_S: Final = 3.0
_STOP_S: Final = 30.0
_SUPERVISION_S: Final = 1.0
_NODE: Final = "broker"

_ADMIN: Final[dict[str, Any]] = {"name": "admin", "kind": "admin", "pause_s": 1.0}
"""Who makes the topics of a case that has no administrator."""


@dataclass(slots=True)
class Outcome:
    seed: int
    violation: Violation | None = None
    trace_hash: str = ""
    operations: int = 0
    cpu_s: float = 0.0
    counts: "Counter[str]" = field(default_factory=Counter)


def run_case(case: Case, trace: IO[str] | None = None) -> Outcome:
    begun = time.process_time()
    outcome = Outcome(case.seed)
    gc.collect()
    gc.freeze()  # What is left are modules and tables: the next run need not look at them again.
    with World(case.seed, quality=LinkQuality(**case.links)) as world:  # type: ignore[arg-type]
        if trace is not None:
            world.trace.write_to(trace, asdict(case))
        run = Run(world, case)
        try:
            run.run()
        except Violation as violation:
            outcome.violation = violation
        outcome.trace_hash = world.trace.hash
        outcome.operations = run.operations
        outcome.counts = run.coverage.totals()
    outcome.cpu_s = time.process_time() - begun
    return outcome


class Run:
    def __init__(self, world: World, case: Case) -> None:
        self.world, self.case = world, case
        self.ensemble = world.add_ensemble(case.session_timeout_s) if case.nodes > 1 else None
        if self.ensemble is not None and case.store_answer_s:
            chance = world.chance("answers of the ensemble")
            self.ensemble.ensemble.answer_s = lambda: chance.uniform(0, case.store_answer_s)
        self.nodes: Sequence[SimulatedNode] = [self._add_node(index) for index in range(case.nodes)]
        self.node = self.nodes[0]
        self.coverage = Coverage(world, self.nodes, self.ensemble)
        self.all_clients: list[SimulatedClient] = []
        self._cast = Cast(case)
        self._undoing: dict[int, Callable[[], None]] = {}
        self._undo_count = 0
        self._wanted_down: set[str] = set()
        self._outside: set[str] = set()
        """Clients that never get better."""
        world.ledger.on_cut.append(self._on_cut)
        self._cluster = None if world.replicas is None else HealedCluster(world.replicas, self.nodes)
        if world.states is not None:
            is_unclean = case.settings.get("unclean.leader.election.enable") == "true"
            world.states.losses.allows_unclean = is_unclean

    def _on_cut(self, ledger: PartitionLedger) -> None:
        """Of several replicas the last ones with all that was committed are lost."""
        if self.ensemble is not None and ledger.topic in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC):
            self._cast.forget_offsets()
            self._cast.begin_log_life(self.world.clients.values())

    def _add_node(self, index: int) -> SimulatedNode:
        if self.ensemble is None:
            return self._as_drawn(self.world.add_node(_NODE, self.case.settings, node_id=index))
        name = f"{_NODE}{index}"
        return self._as_drawn(
            self.world.add_node(name, self.case.settings, node_id=index, ensemble=self.ensemble)
        )

    def _as_drawn(self, node: SimulatedNode) -> SimulatedNode:
        node.idle_looks_ms = self.case.idle_looks_ms
        return node

    def run(self) -> None:
        self._form()
        self._chaos()
        self._heal()
        self._quiet()

    # The phases.

    def _form(self) -> None:
        world = self.world
        for node in self.nodes:
            node.start()
        if not world.run_until(lambda: all(node.is_serving for node in self.nodes), within_s=FORM_S):
            raise Violation("I16", f"not every broker starts: {[node.failure for node in self.nodes]}")
        plans = (each for each in self.case.clients if each["kind"] == "admin")
        admin = self._begin_client(next(plans, _ADMIN))
        assert isinstance(admin, Admin)
        if not world.run_until(lambda: admin.is_ready, within_s=FORM_S):
            raise Violation("I16", "the topics cannot be made")
        for plan in self.case.clients:
            if plan["kind"] != "admin":
                self._begin_client(plan)
        world.run_for(FORM_S - min(world.loop.now_s, FORM_S))
        self._supervise()

    def _chaos(self) -> None:
        world = self.world
        begun_s = world.loop.now_s
        if self.ensemble is not None and any(
            each["fault"] in faults.OF_AN_ENSEMBLE for each in self.case.faults
        ):
            self.ensemble.keep_snapshots()
        for fault in self.case.faults:
            world.run_for(max(begun_s + fault["at_s"] - world.loop.now_s, 0))
            self._apply(fault)
        world.run_for(max(begun_s + self.case.chaos_s - world.loop.now_s, 0))

    def _heal(self) -> None:
        world = self.world
        world.trace.note("world", "everything heals")
        for undo in [self._undoing.pop(each) for each in sorted(self._undoing)]:
            undo()
        self._wanted_down.clear()
        for client in world.clients.values():
            client.completed_since_heal = 0
        self._become_writable()
        until_s = world.loop.now_s + PROGRESS_S
        self._leave_out_the_lost()
        if not world.run_until(lambda: self._has_recovered, within_s=until_s - world.loop.now_s):
            late = [each.name for each in self._core() if not each.completed_since_heal]
            state = ", ".join(f"{each.name} is {each.state.value} ({each.failure})" for each in self.nodes)
            raise Violation("I16", f"{PROGRESS_S:.0f} s after the last fault {late} wait; {state}")
        self._complete_operations()
        self._agree()

    def _leave_out_the_lost(self) -> None:
        """Where a directory is dead, clients of what is not in another one wait for ever: nobody can know
        whether it is in the dead one. Looked at when the broker serves: its start takes away what a power cut
        has left without an id."""
        for node in self.nodes:
            if _has_dead_directory(node):
                self._wait_for(node)
                living = [each for each in node.log_directories if not node.disk.has_died(each)]
                found = {name for each in living for name in node.disk.list(each)}
                lost = {
                    topic for topic, count in self._partition_counts() if not _has_all(found, topic, count)
                }
                users = (each["name"] for each in self.case.clients if not lost.isdisjoint(topics_of(each)))
                self._outside.update(users)

    def _wait_for(self, node: SimulatedNode) -> None:
        self.world.run_until(lambda: node.is_serving, within_s=PROGRESS_S)

    def _partition_counts(self) -> list[tuple[str, int]]:
        settings = self.case.settings
        internal = (
            (OFFSETS_TOPIC, int(settings["offsets.topic.num.partitions"])),
            (TRANSACTIONS_TOPIC, int(settings["transaction.state.log.num.partitions"])),
        )
        return [*TOPICS.items(), *internal]

    def _become_writable(self) -> None:
        """Once the last process that was stopped goes on, and its session has ended if it was away for too
        long."""
        cluster, loop = self._cluster, self.world.loop
        if cluster is None or not self.case.replication:
            return
        self.world.add_client("operator", self.nodes, lambda around: Operator(around, self._give_up))
        last_s = max([loop.now_s, *(node.life.held_until_s for node in self._core_nodes)])
        within_s = last_s - loop.now_s + self.case.session_timeout_s + _WRITABLE_S
        if (why := self._wait_while(cluster.why_not_writable, within_s)) is not None:
            raise Violation("I16", f"{within_s:.1f} s after everything healed {why}")

    def _give_up(self) -> list[tuple[str, int]]:
        assert self._cluster is not None
        assert self.world.states is not None
        lost = [(each.topic, each.index) for each in self._cluster.lost()]
        self.world.states.losses.given_up.update(lost)
        return lost

    def _become_equal(self) -> None:
        cluster = self._cluster
        if cluster is None:
            return
        if (why := self._wait_while(cluster.why_not_equal, PROGRESS_S)) is not None:
            raise Violation("I7", f"{PROGRESS_S:.0f} s after the last write {why}")

    def _wait_while(self, why_not: Callable[[], str | None], within_s: float) -> str | None:
        """Look now and then, because a look takes time; the last answer."""
        until_s = self.world.loop.now_s + within_s
        while (why := why_not()) is not None and self.world.loop.now_s < until_s:
            self.world.run_for(_LOOK_S)
        return why

    def _agree(self) -> None:
        """All nodes know the same of every partition."""
        states = self.world.states
        if states is None:
            return
        nodes = self._core_nodes
        if not self.world.run_until(lambda: states.why_not_agreed(nodes) is None, within_s=PROGRESS_S):
            why = states.why_not_agreed(nodes)
            raise Violation("I16", f"{PROGRESS_S:.0f} s after everything healed {why}")

    def _complete_operations(self) -> None:
        """Go on until the clients have done as much as the case asks for, however long they were kept from
        it."""
        for _ in range(int(PROGRESS_S)):
            if self.operations >= self.case.operations_min:
                return
            self.world.run_for(1.0)
        raise Violation(
            "I16", f"only {self.operations} operations, {PROGRESS_S:.0f} s after everything healed"
        )

    @property
    def operations(self) -> int:
        return sum(each.completed for each in self.all_clients)

    @property
    def _has_recovered(self) -> bool:
        are_up = all(node.is_serving for node in self._core_nodes)
        return are_up and all(each.completed_since_heal for each in self._core())

    @property
    def _core_nodes(self) -> list[SimulatedNode]:
        return [each for each in self.nodes if each.name not in self._outside]

    def _core(self) -> list[SimulatedClient]:
        return [each for each in self.world.clients.values() if each.name not in self._outside]

    def _quiet(self) -> None:
        world = self.world
        for client in world.clients.values():
            client.is_stopping = True
        lives = [world.life_of(each.name) for each in self._core()]
        if not world.run_until(lambda: all(life.is_idle() for life in lives), within_s=PROGRESS_S):
            raise Violation("I18", "clients that were told to stop wait for an answer for ever")
        world.run_for(_QUIET_S + self._transactions_end_s())
        self._become_equal()
        self.coverage.check_quiet(self._core_nodes)
        for node in self._core_nodes:
            world.observers[node.name].look_at_quiet()
        for node in self._core_nodes:
            self._stop(node)

    def _stop(self, node: SimulatedNode) -> None:
        self._wanted_down.add(node.name)
        node.stop()
        if not self.world.run_until(lambda: node.state is State.DOWN, within_s=_STOP_S):
            left = [task.get_name() for task in node.unfinished()]
            raise Violation("I18", f"{node.name} does not stop; these run: {left}")
        # That a directory which is dead cannot be saved is said at the end, when all others are.
        is_told = isinstance(node.failure, StorageError) and _has_dead_directory(node)
        if node.failure is not None and not is_told:
            raise Violation("I18", f"{node.name} fails to stop: {node.failure}")

    def _transactions_end_s(self) -> float:
        return TransactorPlan("").timeout_ms / 1000 + 4.0

    # What faults ask for.

    def later(self, after_s: float, undo: Callable[[], None]) -> None:
        self._undo_count += 1
        number = self._undo_count
        self._undoing[number] = undo

        def end() -> None:
            found = self._undoing.pop(number, None)
            if found is not None:
                found()

        self.world.loop.at(self.world.loop.now_s + after_s, self.world.loop.world, end)

    def bring_up(self, node: SimulatedNode, after_s: float) -> None:
        self._wanted_down.add(node.name)
        self.later(after_s, lambda: self._wanted_down.discard(node.name))

    def restart_client(self, name: str) -> None:
        plan = next((each for each in self.case.clients if each["name"] == name), _ADMIN)
        self.world.remove_client(name)
        self._begin_client(plan)
        self.world.trace.note(name, "is killed and begins again")

    def _apply(self, fault: dict[str, Any]) -> None:
        node = self.node = self.nodes[fault.get("node", 0)]
        name = fault["fault"]
        if node.name in self._outside:
            return
        if fault.get("lasts"):
            self._outside.update([node.name] if name in faults.FOR_EVER else fault["hosts"])
            if self._cluster is not None:
                self._cluster.outside = {each.node_id for each in self.nodes if each.name in self._outside}
        if node.state is State.DOWN and name in ("kill", "power_cut", "pause", "stall"):
            return
        self.coverage.note_fault(fault)
        self.world.trace.note("world", "fault", **{k: v for k, v in fault.items() if k != "at_s"})
        faults.apply(self, fault)

    def note_loss(self, node: SimulatedNode, *, of_a_disk: bool = False) -> None:
        is_on_disk = self.case.settings.get("riverlog.acks.fsync") == "true" and not of_a_disk
        self.world.observers[node.name].note_power_cut()
        if self.world.membership is not None:
            if not is_on_disk:
                self.world.membership.note_loss(node)
            if of_a_disk:
                self.world.observers[node.name].forget_disk()
        else:
            if not is_on_disk:
                self._cast.forget_offsets()
            self._cast.begin_log_life(self.world.clients.values())

    def _supervise(self) -> None:
        """Whoever runs a broker starts it again when it is down and should not be, unless the ensemble shows
        an older state."""
        is_to_wait = self.ensemble is not None and self.ensemble.is_older
        for node in () if is_to_wait else self.nodes:
            is_down = node.state is State.DOWN and node.name not in self._outside
            if is_down and node.name not in self._wanted_down:
                node.start()
        loop = self.world.loop
        loop.at(loop.now_s + _SUPERVISION_S, loop.world, self._supervise)

    # Clients.

    def _begin_client(self, plan: dict[str, Any]) -> SimulatedClient:
        client = self.world.add_client(plan["name"], self.nodes, lambda around: self._cast.make(around, plan))
        self.all_clients.append(client)
        return client


def _has_dead_directory(node: SimulatedNode) -> bool:
    return any(node.disk.has_died(each) for each in node.log_directories)


def _has_all(directories: set[str], topic: str, count: int) -> bool:
    return all(f"{topic}-{index}" in directories for index in range(count))
