"""What a coordinator knows is what a replay of its log gives (I13).

The replay reads the files past the broker.
"""

from collections.abc import Callable
from typing import Any

from riverlog.coordinator.groups.shard import GroupShard
from riverlog.coordinator.runtime.loading import replay_batch
from riverlog.coordinator.runtime.runtime import CoordinatorRuntime
from riverlog.coordinator.transactions.shard import TransactionShard
from riverlog.testing.simulation.checks.log_files import batches
from riverlog.testing.simulation.nodes import ObservedNode, SimulatedNode
from riverlog.testing.simulation.violations import Violation


def compare_shards(node: SimulatedNode, parts: ObservedNode) -> None:
    _compare(node, parts.coordinators.groups._runtime, _groups)
    _compare(node, parts.coordinators.transactions.coordinator._runtime, _transactions)


def _compare(
    node: SimulatedNode, runtime: CoordinatorRuntime[Any], hard_state: Callable[[Any], dict[str, Any]]
) -> None:
    for index, hosted in runtime._hosted.items():
        log = hosted.partition.log
        if not hosted.is_leader or not log.is_online:
            continue
        replayed = runtime._new_shard()
        for header, data in batches(node.disk, log.directory):
            if log.log_start_offset < header.next_offset <= log.log_end_offset:
                replay_batch(replayed, data, 0, header, log.log_start_offset)
        live, found = hard_state(hosted.shard), hard_state(replayed)
        others = sorted(each for each in live.keys() | found.keys() if live.get(each) != found.get(each))
        if others:
            where = f"{runtime.topic}-{index}"
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
