"""How far the flows of a project have come, from their checkpoints and the brokers, without Spark."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass

from riverlog.spark.pipelines import notes, runner_lock
from riverlog.spark.pipelines.checkpoints import Checkpoint, CheckpointStore, Positions
from riverlog.spark.pipelines.lag import LagGauge, in_step, total_lag
from riverlog.spark.pipelines.project import Project
from riverlog.spark.pipelines.runner_lock import Runner


@dataclass(frozen=True, slots=True)
class FlowStatus:
    checkpoint: Checkpoint
    lag: int | None
    """Records that are there and not read; None if the brokers do not say."""

    @property
    def positions(self) -> dict[str, dict[int, int]]:
        merged: dict[str, dict[int, int]] = {}
        for each in self.checkpoint.positions:
            for topic, partitions in each.items():
                merged.setdefault(topic, {}).update(partitions)
        return merged

    @property
    def records_read(self) -> int:
        """The sum of all positions: how many have been read, for topics read from their first record."""
        return sum(offset for partitions in self.positions.values() for offset in partitions.values())


@dataclass(frozen=True, slots=True)
class ProjectStatus:
    runner: Runner | None
    flows: list[FlowStatus]


def status_of(project: Project) -> ProjectStatus:
    by_flow = {(note.flow, _last(note.target)): note for note in notes.read(project.state_directory)}
    flows = []
    with closing(LagGauge()) as gauge:
        for checkpoint in CheckpointStore(project).all():
            note = by_flow.get((checkpoint.flow, _last(checkpoint.target)))
            sources: tuple[Mapping[str, str], ...] = () if note is None else note.sources
            flows.append(FlowStatus(checkpoint, _lag(gauge, sources, checkpoint.positions)))
    flows.sort(key=lambda each: (each.checkpoint.target, each.checkpoint.flow))
    return ProjectStatus(runner_lock.alive(project.state_directory), flows)


def _lag(
    gauge: LagGauge, sources: tuple[Mapping[str, str], ...], positions: tuple[Positions, ...]
) -> int | None:
    return total_lag(gauge, in_step(sources, positions), positions)


def _last(name: str) -> str:
    return name.rpartition(".")[2]
