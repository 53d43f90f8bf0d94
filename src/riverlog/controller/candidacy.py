"""Who is the controller: what a broker that wants to be writes, and what an uncertain outcome means. Pure.

The office is the node `/controller`, which its holder's session keeps alive; the term is the number in
`/controller_epoch`. Both change in one step, so that no two terms have the same number, and every write of a
controller checks the term: one that has been followed by another changes nothing any more.
"""

from typing import NamedTuple

from riverlog.metadata import layout, payloads
from riverlog.model.ids import NodeId
from riverlog.model.metadata_store import Check, Create, Operation, Set, Versioned


class Term(NamedTuple):
    epoch: int
    version: int
    """Of the node that holds the epoch, which rises with it."""

    @property
    def check(self) -> Check:
        """To stand in front of every write of this term."""
        return Check(layout.CONTROLLER_EPOCH, self.version)


class Claim(NamedTuple):
    term: Term
    """If the claim succeeds."""
    operations: tuple[Operation, ...]


def decide_claim(
    holder: Versioned | None, epoch: Versioned | None, node_id: NodeId, wall_ms: int
) -> Claim | None:
    """How to take the office, from the nodes as they were read; `None` while somebody has it."""
    if holder is not None:
        return None
    claim = Create(layout.CONTROLLER, payloads.encode_controller(node_id, wall_ms), ephemeral=True)
    if epoch is None:
        return Claim(Term(1, 0), (Create(layout.CONTROLLER_EPOCH, b"1"), claim))
    term = Term(int(epoch.data) + 1, epoch.version + 1)
    return Claim(term, (Set(layout.CONTROLLER_EPOCH, str(term.epoch).encode(), epoch.version), claim))
