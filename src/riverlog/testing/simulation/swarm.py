"""Many seeds, on several processes: what failed, what was come across, and whether runs repeat themselves.

One seed in a hundred is run twice, and must give the same trace (I20). A process runs a share of the seeds
and is then replaced, so that nothing adds up.
"""

import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from riverlog.testing.simulation import failover_cases
from riverlog.testing.simulation.cases import CLUSTERS, draw
from riverlog.testing.simulation.coverage import (
    MUST_HAPPEN,
    MUST_HAPPEN_IN_A_CLUSTER,
    MUST_HAPPEN_IN_FAILOVERS,
    MUST_HAPPEN_WITH_AN_ENSEMBLE_THAT_GOES_BACK,
    MUST_HAPPEN_WITH_FEW_OPEN_LOGS,
    MUST_HAPPEN_WITH_REPLICAS,
)
from riverlog.testing.simulation.faults import (
    FAULTS,
    FOR_EVER,
    OF_A_CLUSTER,
    OF_AN_ENSEMBLE,
    OF_CASES,
    OF_REPLICAS,
    OF_SEVERAL_DIRECTORIES,
)
from riverlog.testing.simulation.replica_cases import TAKES_DATA
from riverlog.testing.simulation.runs import Outcome, run_case
from riverlog.testing.simulation.violations import Violation

_NOT_IN_A_CORE: Final = frozenset(
    {
        "fault isolated",
        *(f"fault {each}" for each in TAKES_DATA),
        "unsynced bytes lost",
        "torn writes",
        "names lost",
        "topics deleted",
    }
)
"""A majority that is to go on loses no data, and no topic is made that not all of its nodes have."""
_TWICE_EVERY: Final = 100
_SEEDS_PER_PROCESS: Final = 50


@dataclass(slots=True)
class Summary:
    seeds: int = 0
    operations: int = 0
    cpu_s: float = 0.0
    failed: list[Outcome] = field(default_factory=list)
    counts: "Counter[str]" = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        self.seeds += 1
        self.operations += outcome.operations
        self.cpu_s += outcome.cpu_s
        self.counts.update(outcome.counts)
        if outcome.violation is not None:
            self.failed.append(outcome)

    def never_happened(self, profile: str) -> list[str]:
        """What a profile must come across and has not."""
        if profile == "failovers":
            wanted = [*MUST_HAPPEN_IN_FAILOVERS, *(f"fault {each}" for each in failover_cases.KINDS)]
            return [each for each in dict.fromkeys(wanted) if not self.counts[each]]
        is_cluster, is_replicated = profile in CLUSTERS, profile == "replicas"
        left_out = {*(() if is_cluster else OF_A_CLUSTER), *(() if is_replicated else OF_REPLICAS), *OF_CASES}
        is_core = profile == "core"
        left_out.update(OF_CASES, () if is_core else FOR_EVER)
        goes_back = is_cluster and not is_core
        left_out.update(() if goes_back else OF_AN_ENSEMBLE)
        left_out.update(() if profile == "liveness" else OF_SEVERAL_DIRECTORIES)
        drawn = [each for each in FAULTS if each not in left_out]
        wanted = [*MUST_HAPPEN, *(MUST_HAPPEN_IN_A_CLUSTER if is_cluster else ())]
        wanted += MUST_HAPPEN_WITH_FEW_OPEN_LOGS if profile in ("standard", "replicas") else ()
        wanted += MUST_HAPPEN_WITH_REPLICAS if is_replicated else ()
        wanted += MUST_HAPPEN_WITH_AN_ENSEMBLE_THAT_GOES_BACK if goes_back else ()
        wanted += [f"fault {each}" for each in drawn]
        not_drawn = _NOT_IN_A_CORE if is_core else ()
        return [each for each in wanted if not self.counts[each] and each not in not_drawn]


def run_seed(seed: int, profile: str = "standard") -> Outcome:
    case = draw(seed, profile)
    outcome = run_case(case)
    if seed % _TWICE_EVERY == 0 and outcome.violation is None:
        again = run_case(case)
        if again.trace_hash != outcome.trace_hash:
            what = f"the traces {outcome.trace_hash} and {again.trace_hash} of one seed differ"
            outcome.violation = Violation("I20", what)
    return outcome


def run_seeds(
    seeds: Iterable[int],
    profile: str,
    jobs: int,
    on_outcome: Callable[[Outcome], None],
    *,
    stops_early: bool = False,
) -> Summary:
    """All of them, or up to the first that fails."""
    summary = Summary()
    for outcome in _outcomes([(seed, profile) for seed in seeds], jobs):
        summary.add(outcome)
        on_outcome(outcome)
        if stops_early and outcome.violation is not None:
            break
    return summary


def _outcomes(work: list[tuple[int, str]], jobs: int) -> Iterator[Outcome]:
    if jobs <= 1 or len(work) <= 1:
        yield from map(_run, work)
        return
    context = multiprocessing.get_context("fork")
    with context.Pool(jobs, maxtasksperchild=_SEEDS_PER_PROCESS) as pool:
        yield from pool.imap(_run, work)


def _run(work: tuple[int, str]) -> Outcome:
    return run_seed(*work)
