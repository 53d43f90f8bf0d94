"""Who is the controller: what a broker that wants to be writes, and what an uncertain outcome means. Pure.

The office is the node `/controller`, which its holder's session keeps alive; the term is the number in
`/controller_epoch`. Both change in one step, so that no two terms have the same number, and every write of a
controller checks the term: one that has been followed by another changes nothing any more.
"""

from typing import NamedTuple

from riverlog.metadata import layout, payloads
from riverlog.model.ids import NodeId
from riverlog.model.metadata_store import Check, Create, Delete, Operation, Set, Versioned


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
    proof: Create
    """The one whose effect no other broker's claim has."""


def decide_claim(
    holder: Versioned | None, epoch: Versioned | None, node_id: NodeId, wall_ms: int
) -> Claim | None:
    """How to take the office, from the nodes as they were read; `None` while another broker has it.

    Where it is this broker, it was in an earlier life or under an earlier term, and nobody else can be meant.
    """
    if holder is not None and payloads.decode_controller(layout.CONTROLLER, holder.data) != node_id:
        return None
    entry = Create(layout.CONTROLLER, payloads.encode_controller(node_id, wall_ms), ephemeral=True)
    vacate = () if holder is None else (Delete(layout.CONTROLLER, holder.version),)
    if epoch is None:
        return Claim(Term(1, 0), (Create(layout.CONTROLLER_EPOCH, b"1"), *vacate, entry), entry)
    term = Term(int(epoch.data) + 1, epoch.version + 1)
    begin = Set(layout.CONTROLLER_EPOCH, str(term.epoch).encode(), epoch.version)
    return Claim(term, (begin, *vacate, entry), entry)
