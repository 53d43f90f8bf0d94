"""What a coordinator knows is what a replay of its log gives (I13).

The replay reads the files past the broker. A shard is looked at now and then, and as soon as it serves: what
its load has left out may be written over soon.
"""

from collections.abc import Callable
from typing import Any

from riverlog.coordinator.groups.shard import GroupShard
from riverlog.coordinator.runtime.loading import replay_batch
from riverlog.coordinator.runtime.runtime import CoordinatorRuntime
from riverlog.coordinator.runtime.shard_runtime import ShardRuntime
from riverlog.coordinator.transactions.shard import TransactionShard
from riverlog.testing.simulation.checks.log_files import batches
from riverlog.testing.simulation.nodes import ObservedNode, SimulatedNode
from riverlog.testing.simulation.violations import Violation

_HardState = Callable[[Any], dict[str, Any]]
"""What of a shard comes from its log."""


def compare_shards(node: SimulatedNode, parts: ObservedNode) -> None:
    _compare(node, parts.coordinators.groups._runtime, _groups)
    _compare(node, parts.coordinators.transactions.coordinator._runtime, _transactions)


class LoadedShardsCheck:
    """Of one node."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int], ShardRuntime[Any]] = {}

    def look(self, node: SimulatedNode, parts: ObservedNode) -> None:
        self._look_at(node, parts.coordinators.groups._runtime, _groups)
        self._look_at(node, parts.coordinators.transactions.coordinator._runtime, _transactions)

    def _look_at(self, node: SimulatedNode, runtime: CoordinatorRuntime[Any], hard_state: _HardState) -> None:
        for index, hosted in runtime._hosted.items():
            if self._seen.get((runtime.topic, index)) is not hosted:
                self._seen[runtime.topic, index] = hosted
                _compare_one(node, runtime, hosted, hard_state)


def _compare(node: SimulatedNode, runtime: CoordinatorRuntime[Any], hard_state: _HardState) -> None:
    for hosted in runtime._hosted.values():
        _compare_one(node, runtime, hosted, hard_state)


def _compare_one(
    node: SimulatedNode, runtime: CoordinatorRuntime[Any], hosted: ShardRuntime[Any], hard_state: _HardState
) -> None:
    log = hosted.partition.log
    if not hosted.is_leader or not log.is_online:
        return
    replayed = runtime._new_shard()
    for header, data in batches(node.disk, log.directory):
        if log.log_start_offset < header.next_offset <= log.log_end_offset:
            replay_batch(replayed, data, 0, header, log.log_start_offset)
    live, found = hard_state(hosted.shard), hard_state(replayed)
    others = sorted(each for each in live.keys() | found.keys() if live.get(each) != found.get(each))
    if others:
        where = f"{runtime.topic}-{hosted.index}"
        raise Violation("I13", f"{where}: a replay of the log gives other than is known of {others}")


def _groups(shard: GroupShard) -> dict[str, Any]:
    classic = {f"classic group {each.group_id}": each.stored for each in shard.classic._groups.values()}
    consumer = {f"consumer group {each.group_id}": each for each in shard.consumer._groups.values()}
    written = {name: each for name, each in classic.items() if each is not None}
    return {
        "offsets": shard.offsets.table,
        **written,
        **{name: each for name, each in consumer.items() if not each.is_without_a_trace},
    }


def _transactions(shard: TransactionShard) -> dict[str, Any]:
    return {f"transaction of {each.transactional_id}": each for each in shard}
