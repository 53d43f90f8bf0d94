"""Writes whose answer may be lost: carried out exactly once, or known not to have been.

A multi is all or nothing, so that the effect of one of its operations proves all of it. Which one is the
caller's to say: it must be one whose effect nobody else's write would have, as the node of a topic with its
fresh id, or a state with an expected version. Of many states in one multi any proves it: some may have been
changed again before they are read.
"""

import asyncio
from collections.abc import Sequence
from typing import assert_never

from riverlog.model.metadata_store import (
    Check,
    Create,
    Delete,
    MetadataStore,
    Operation,
    OutcomeUnknownError,
    Set,
    UnreachableError,
)


async def write_multi(
    store: MetadataStore, operations: Sequence[Operation], *, proof: Operation | None = None
) -> None:
    """As `MetadataStore.multi`, but hardly ever of unknown outcome: after a lost answer it reads whether the
    write was carried out, and if it was not, tries again. Raises `OutcomeUnknownError` only where the store
    cannot be read after that either.

    `proof` is the operation by which that is seen; without it, the first that changes something, or any that
    expects a version.
    """
    proofs = _proofs_in(operations) if proof is None else [proof]
    while True:
        try:
            return await store.multi(operations)
        except OutcomeUnknownError as unknown:
            if await _is_made(store, proofs, unknown):
                return None


async def _is_made(store: MetadataStore, proofs: Sequence[Operation], unknown: OutcomeUnknownError) -> bool:
    try:
        await store.sync()
        return any(await asyncio.gather(*(has_happened(store, each) for each in proofs)))
    except UnreachableError as error:
        # Which would mean that nothing was sent: so it is for the question, but not for the write.
        raise OutcomeUnknownError(f"{unknown} Nor can it be read whether it was made: {error}") from error


def _proofs_in(operations: Sequence[Operation]) -> list[Operation]:
    changes = [each for each in operations if not isinstance(each, Check)]
    versioned = [each for each in changes[1:] if isinstance(each, Set) and each.expected_version is not None]
    return [*changes[:1], *versioned]


async def has_happened(store: MetadataStore, operation: Operation) -> bool:
    """Whether the store is as this operation leaves it. To be asked after a `sync`."""
    node = await store.get(operation.path)
    match operation:
        case Create(data=data, ephemeral=ephemeral):
            return node is not None and node.data == data and node.is_mine == ephemeral
        case Set(data=data, expected_version=expected):
            return (
                node is not None and node.data == data and (expected is None or node.version == expected + 1)
            )
        case Delete():
            return node is None
        case Check():
            raise AssertionError("A check changes nothing that could be seen.")
        case _:
            assert_never(operation)
