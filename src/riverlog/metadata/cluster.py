"""First steps of a node in a metadata store: the permanent nodes, the cluster id, the broker's registration.

Not here: topics and configs. A store without a cluster id is new; one that has lost the id its data
directory remembers is refused, because every log would look like that of a deleted topic.
"""

from collections.abc import Mapping
from contextlib import suppress
from uuid import UUID

from riverlog.metadata import layout, payloads
from riverlog.model.errors import FormatError
from riverlog.model.ids import NodeId
from riverlog.model.metadata_store import MetadataStore, NodeExistsError, NoNodeError
from riverlog.model.network import Address


async def prepare(store: MetadataStore, *, remembered: str | None, fresh_id: UUID) -> str:
    """Make the permanent nodes and return the cluster id.

    `remembered` is the cluster id in the data directory's `meta.properties`, if there is one; `fresh_id`
    becomes the id of a new cluster.
    """
    for path in layout.PERSISTENT:
        if await store.get(path) is None:
            await _create_unless_there(store, path, b"")
    node = await store.get(layout.CLUSTER_ID)
    if node is None:
        if remembered is not None:
            raise FormatError(
                f"The data directory belongs to cluster {remembered}, but its metadata is empty. "
                "Restore the metadata from a backup or an export; starting without it would lose every topic."
            )
        await _create_unless_there(
            store, layout.CLUSTER_ID, payloads.encode_cluster_id(payloads.uuid_text(fresh_id))
        )
        node = await store.get(layout.CLUSTER_ID)
        assert node is not None
    cluster_id = payloads.decode_cluster_id(layout.CLUSTER_ID, node.data)
    if remembered is not None and remembered != cluster_id:
        raise FormatError(
            f"The data directory belongs to cluster {remembered}, the metadata to cluster {cluster_id}. "
            "Use the data directory of this cluster, or an empty one."
        )
    return cluster_id


async def register_broker(
    store: MetadataStore,
    node_id: NodeId,
    endpoints: Mapping[str, Address],
    *,
    security: Mapping[str, str],
    rack: str | None,
    now_ms: int,
) -> None:
    """Announce this broker for as long as its session lasts; a second announcement replaces the first."""
    path = layout.broker(node_id)
    data = payloads.encode_broker(payloads.BrokerNode(endpoints, security, rack), now_ms)
    with suppress(NoNodeError):
        await store.delete(path)
    await store.create(path, data, ephemeral=True)


async def _create_unless_there(store: MetadataStore, path: str, data: bytes) -> None:
    try:
        await store.create(path, data)
    except NodeExistsError:
        return  # Another node came first.
