"""A world: one virtual-time loop with nodes, clients, a network, and the ledger that all is held against.

    world = World(seed=7)
    node = world.add_node("n1")
    node.start()
    world.run_until(lambda: node.is_serving, within_s=5)

Nodes of one cluster share an ensemble:

    ensemble = world.add_ensemble()
    nodes = [world.add_node(name, ensemble=ensemble) for name in ("n1", "n2", "n3")]

Whatever breaks a promise, seen by an observer or by a client, ends `run_until` and `run_for` with the
`Violation`. `end` leaves nothing behind.
"""

import gc
import logging
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from riverlog.model.errors import DiskFullError, StorageError
from riverlog.model.internal_topics import TRANSACTIONS_TOPIC
from riverlog.model.metadata_store import StoreError
from riverlog.model.network import Address
from riverlog.testing.simulated_store import SimulatedEnsemble
from riverlog.testing.simulation.checks.holding import Holdings
from riverlog.testing.simulation.checks.ledger import Ledger
from riverlog.testing.simulation.checks.membership import MembershipCheck
from riverlog.testing.simulation.checks.observer import NodeObserver
from riverlog.testing.simulation.checks.replica_observer import ReplicaObserver, Replicas
from riverlog.testing.simulation.checks.standard import add_ledger_checks, add_node_checks
from riverlog.testing.simulation.checks.states import PartitionState, PartitionStates
from riverlog.testing.simulation.clients.process import SimulatedClient, Surroundings
from riverlog.testing.simulation.machine.ensembles import SharedEnsemble
from riverlog.testing.simulation.machine.links import LinkQuality, Links
from riverlog.testing.simulation.machine.lives import CURRENT, Life
from riverlog.testing.simulation.machine.loop import VirtualLoop
from riverlog.testing.simulation.machine.network import SimulatedWires
from riverlog.testing.simulation.nodes import SimulatedNode
from riverlog.testing.simulation.trace import Trace
from riverlog.testing.simulation.violations import Violation

C = TypeVar("C", bound=SimulatedClient)

_PORT = 9092
_STEPS_WITHOUT_TIME_MAX = 200_000
_OPERATING_FAILURES = (StorageError, DiskFullError, StoreError)


class World:
    def __init__(self, seed: int, *, quality: LinkQuality | None = None) -> None:
        self.seed = seed
        self.loop = VirtualLoop(self.chance("loop"))
        self.links = Links(self.chance("links"), quality)
        self.wires = SimulatedWires(self.loop, self.links)
        self.trace = Trace(lambda: self.loop.now_s, lambda: self.loop.steps)
        self.ledger = Ledger()
        self._transactions = add_ledger_checks(self.ledger)
        self.counts: Counter[str] = Counter()
        self.nodes: dict[str, SimulatedNode] = {}
        self.clients: dict[str, SimulatedClient] = {}
        self.observers: dict[str, NodeObserver] = {}
        self.states: PartitionStates | None = None
        """Where nodes share an ensemble."""
        self.replicas: Replicas | None = None
        self.membership: MembershipCheck | None = None
        self._client_lives: dict[str, Life] = {}
        self._violation: Violation | None = None
        self.loop.after_step = self._after_step
        self.loop.on_exception = self._on_exception
        self._was_collecting = gc.isenabled()
        gc.disable()  # What a collection ends would otherwise depend on what ran before.
        self._errors = _Errors(self._on_error)
        self._errors.begin()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def chance(self, what: str) -> random.Random:
        """Chance of its own for each purpose, so that one does not move another."""
        return random.Random(f"{self.seed}/{what}")

    def add_ensemble(self, session_timeout_s: float = 6.0) -> SharedEnsemble:
        """For the nodes of one cluster. Its host is `ensembles.HOST`, for `links.cut`."""
        latency_s = _latency(self.chance("ensemble"))
        shared = SharedEnsemble(self.loop, self.links, latency_s, session_timeout_s)
        self.states = PartitionStates(shared.ensemble, self.counts)
        self.states.on_written.append(self._count_failover)
        self.ledger.is_replicated = True
        self.replicas = Replicas(self.ledger, self.states, Holdings(self.ledger), self.counts)
        self.membership = MembershipCheck(self.replicas, self.nodes)
        return shared

    def add_node(
        self,
        name: str,
        settings: Mapping[str, object] | None = None,
        *,
        node_id: int | None = None,
        ensemble: SharedEnsemble | None = None,
    ) -> SimulatedNode:
        """A node that has a store to itself, or is one of the nodes of `ensemble`."""
        own = SimulatedEnsemble(_latency(self.chance(f"store {name}")), gives_up=False)
        node = SimulatedNode(
            name,
            len(self.nodes) if node_id is None else node_id,
            settings or {},
            self.loop,
            self.wires,
            self.trace,
            self.chance(f"node {name}"),
            own if ensemble is None else ensemble.ensemble,
            None if ensemble is None else ensemble.connect,
        )
        self.nodes[name] = node
        observer = self.observers[name] = self._observe(node, ensemble)
        add_node_checks(observer, node, self.ledger, self._transactions, self.loop)
        return node

    def _observe(self, node: SimulatedNode, shared: SharedEnsemble | None) -> NodeObserver:
        if shared is None or self.replicas is None:
            return NodeObserver(node, self.ledger, self.note_violation, lambda: self.loop.now_s)
        if self.membership is not None:
            node.on_serving = self._serving(self.membership)
        return ReplicaObserver(
            node,
            self.replicas,
            self.note_violation,
            lambda: self.loop.now_s,
            lambda: shared.has_heard_of(node.session),
        )

    def _count_failover(self, state: PartitionState) -> None:
        """In which state transactions are when their coordinator goes to another broker."""
        is_new = state.node.leader is not None and state.node.leader_epoch > 0
        if state.topic == TRANSACTIONS_TOPIC and is_new:
            for transaction in self._transactions.present:
                self.counts[f"coordinator failovers with {transaction.state.name}"] += 1

    def _serving(self, membership: MembershipCheck) -> Callable[[SimulatedNode], None]:
        def on_serving(node: SimulatedNode) -> None:
            try:
                membership.note_serving(node)
            except Violation as violation:
                self.note_violation(violation)

        return on_serving

    def add_client(
        self, name: str, brokers: SimulatedNode | Sequence[SimulatedNode], make: Callable[[Surroundings], C]
    ) -> C:
        """A client in a process of its own, which begins at once. Of several brokers, all nodes of one
        cluster, it finds out which to ask for what."""
        nodes = [brokers] if isinstance(brokers, SimulatedNode) else brokers
        life = Life(name)
        around = Surroundings(
            name,
            self.wires.join(life, name),
            [Address(each.name, _PORT) for each in nodes],
            self.ledger,
            self.trace,
            self.counts,
            self.chance(f"client {name}"),
        )
        client = make(around)
        self.clients[name], self._client_lives[name] = client, life
        life.run(lambda: self.loop.create_task(self._run_client(client)))
        return client

    def remove_client(self, name: str) -> None:
        """kill -9 of a client."""
        life = self._client_lives.pop(name)
        del self.clients[name]
        self.wires.leave(life, name, silently=False)
        life.end()

    def life_of(self, client: str) -> Life:
        return self._client_lives[client]

    def run_for(self, seconds: float) -> None:
        self._run_until(None, seconds)

    def run_until(self, is_done: Callable[[], bool], *, within_s: float) -> bool:
        """Whether it was done within the time. Raises the first `Violation`."""
        return self._run_until(is_done, within_s)

    def _run_until(self, is_done: Callable[[], bool] | None, within_s: float) -> bool:
        found = self.loop.run_until(is_done, self.loop.now_s + within_s)
        if self._violation is not None:
            raise self._violation
        return found

    def note_violation(self, violation: Violation) -> None:
        if self._violation is None:
            self.trace.note("world", "violation", broken=str(violation))
            self._violation = violation
            self.loop.is_interrupted = True

    def end(self) -> None:
        """Everything ends at once; nothing of it is left."""
        for node in self.nodes.values():
            if node.life.is_alive:
                node.kill()
        for name, life in self._client_lives.items():
            self.wires.leave(life, name, silently=True)
            life.end()
        self.loop.close()
        self._errors.end()
        if self._was_collecting:
            gc.enable()

    async def _run_client(self, client: SimulatedClient) -> None:
        try:
            await client.run()
        except Violation as violation:
            self.note_violation(violation)

    def _after_step(self, life: Life) -> None:
        states, loop = self.states, self.loop
        if states is not None and states.pending:
            self._look_at_states(states)
        observer = self.observers.get(life.name)
        if observer is not None:
            observer.after_step()
        if loop.steps - loop.steps_before > _STEPS_WITHOUT_TIME_MAX:
            what = f"{life} keeps the loop busy and no time passes, with {loop.last_handle}"
            self.note_violation(Violation("I18", what))

    def _look_at_states(self, states: PartitionStates) -> None:
        try:
            states.look()
        except Violation as violation:
            self.note_violation(violation)

    def _on_exception(self, life: Life, context: dict[str, Any]) -> None:
        """A callback failed, which no callback may. What garbage tells of comes too late to say whose."""
        error = context.get("exception")
        if "handle" not in context or error is None:
            return
        if isinstance(error, Violation):
            self.note_violation(error)
        elif life.is_alive:
            what = f"{context.get('message')}: {error!r}"
            self.note_violation(Violation("bug", f"a callback of {life} failed: {what}"))

    def _on_error(self, record: logging.LogRecord) -> None:
        """An error with a traceback in the broker's log, other than of a disk or a store that fails, is one
        that nobody thought of."""
        life = CURRENT.get(self.loop.world)
        self.trace.note(str(life), "logs", line=record.getMessage())
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, _OPERATING_FAILURES) and life.is_alive:
            what = f"{life} logs: {record.getMessage()}: {error!r}"
            self.note_violation(Violation("bug", what))


class _Errors(logging.Handler):
    """Takes the errors that brokers log, and keeps everything else out of the way."""

    def __init__(self, on_error: Callable[[logging.LogRecord], None]) -> None:
        super().__init__(logging.ERROR)
        self._on_error = on_error
        self._logger = logging.getLogger("riverlog")
        self._before = (self._logger.level, self._logger.propagate)

    def begin(self) -> None:
        self._before = (self._logger.level, self._logger.propagate)
        self._logger.setLevel(logging.ERROR)
        self._logger.propagate = False
        self._logger.addHandler(self)

    def end(self) -> None:
        self._logger.removeHandler(self)
        level, self._logger.propagate = self._before
        self._logger.setLevel(level)

    def emit(self, record: logging.LogRecord) -> None:
        self._on_error(record)


def _latency(chance: random.Random) -> Callable[[], float]:
    return lambda: 0.0001 + chance.random() * 0.002
