"""The content of a metadata store as one JSON document, and back.

A node that kept its own metadata can so take it to a cluster: the paths and the data are Kafka's own, and
every node is as it was, except for those of a session (see `docs/adr/0005-metadata-store.md`). The
document: `format`, the number 1; `nodes`, an object from path to data, parents before children. Data is
UTF-8 text; all payloads of the layout are.
"""

from collections.abc import Iterator
from typing import Any, Final

from riverlog.metadata import layout
from riverlog.metadata.outcomes import write_multi
from riverlog.model.errors import FormatError
from riverlog.model.metadata_store import Create, MetadataStore, NodeExistsError, Operation, Set, bytes_of

FORMAT: Final = 1
HOW_TO_RESTORE: Final = (
    "Restore riverlog-metadata.sqlite from a backup, or move it away and put an export in its place with "
    "`riverlog metadata import`."
)


async def export(store: MetadataStore) -> dict[str, Any]:
    """Everything that outlives a session. Serialises with `json.dumps` as it is."""
    tree = await store.tree("/")
    nodes = {path: node.data.decode() for path, node in sorted(tree.items(), key=lambda item: _key(item[0]))}
    kept = {path: data for path, data in nodes.items() if path != "/" and not _is_of_a_session(path)}
    return {"format": FORMAT, "nodes": kept}


async def restore(store: MetadataStore, document: dict[str, Any]) -> None:
    """Write an exported document into a store that holds no cluster yet; all or nothing.

    Where a store takes less at once, it is written in pieces and the cluster id comes last: until then the
    store holds no cluster, and a second try begins again."""
    if document.get("format") != FORMAT:
        raise FormatError(
            f"The export has format {document.get('format')!r}; this release knows {FORMAT}. "
            "Use the release that wrote it, or a newer one."
        )
    if await store.get(layout.CLUSTER_ID) is not None:
        raise NodeExistsError(
            "The metadata store belongs to a cluster already. Import into a new directory or a new path of "
            "ZooKeeper, or move riverlog-metadata.sqlite away first."
        )
    nodes = {**dict.fromkeys(layout.PERSISTENT, ""), **document["nodes"]}
    operations: list[Operation] = []
    for path, data in sorted(nodes.items(), key=lambda item: (item[0] == layout.CLUSTER_ID, _key(item[0]))):
        exists = await store.get(path) is not None
        operations.append(Set(path, data.encode()) if exists else Create(path, data.encode()))
    for piece in _pieces(operations, store.multi_bytes_max):
        await write_multi(store, piece)


def _pieces(operations: list[Operation], bytes_max: int) -> Iterator[list[Operation]]:
    piece: list[Operation] = []
    size = 0
    for each in operations:
        size += bytes_of([each])
        if piece and size > bytes_max:
            yield piece
            piece, size = [], bytes_of([each])
        piece.append(each)
    if piece:
        yield piece


def _is_of_a_session(path: str) -> bool:
    return path == layout.CONTROLLER or path.startswith(layout.BROKER_IDS + "/")


def _key(path: str) -> list[str]:
    return path.split("/")
