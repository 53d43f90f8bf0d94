"""First steps of a node in a metadata store: the permanent nodes and the cluster id.

Not here: the broker's registration (`registration`), topics and configs. A store without a cluster id is new;
one that has lost the id its data directory remembers is refused, because every log would look like that of a
deleted topic. So is a tree that another program uses.
"""

from collections.abc import Mapping
from uuid import UUID

from riverlog.metadata import layout, payloads
from riverlog.metadata.export import HOW_TO_RESTORE
from riverlog.model.errors import FormatError
from riverlog.model.features import HIGHEST_LEVELS
from riverlog.model.ids import TopicId
from riverlog.model.metadata_store import Create, MetadataStore, NodeExistsError, OutcomeUnknownError


async def prepare(
    store: MetadataStore, *, remembered: str | None, fresh_id: UUID, is_shared: bool = False
) -> str:
    """Make the permanent nodes and return the cluster id.

    `remembered` is the cluster id in the data directory's `meta.properties`, if there is one; `fresh_id`
    becomes the id of a new cluster. In a store that is shared, which others may have filled, the levels of
    features are written down: another release would take its own for granted.
    """
    if is_shared:
        await store.sync()
        await check_is_ours(store)
    if await store.get(layout.CLUSTER_ID) is None and remembered is not None:
        raise FormatError(
            f"The data directory belongs to cluster {remembered}, but its metadata is empty. "
            f"{HOW_TO_RESTORE} Starting without it would lose every topic."
        )
    wanted = dict.fromkeys(layout.PERSISTENT, b"")
    wanted[layout.CLUSTER_ID] = payloads.encode_cluster_id(payloads.uuid_text(fresh_id))
    if is_shared and await store.get(layout.CLUSTER_ID) is None:
        wanted[layout.FEATURES] = payloads.encode_features(HIGHEST_LEVELS)
    await _create_missing(store, wanted)
    node = await store.get(layout.CLUSTER_ID)
    assert node is not None
    cluster_id = payloads.decode_cluster_id(layout.CLUSTER_ID, node.data)
    if remembered is not None and remembered != cluster_id:
        raise FormatError(
            f"The data directory belongs to cluster {remembered}, the metadata to cluster {cluster_id}. "
            "Use the data directory of this cluster, or an empty one."
        )
    return cluster_id


async def deleted_topics(store: MetadataStore) -> frozenset[TopicId]:
    """The topics that are known to be gone, so that their logs may go as well."""
    return frozenset(map(payloads.parse_topic_id, await store.children(layout.DELETED_TOPICS)))


async def check_is_ours(store: MetadataStore) -> None:
    """Raises `FormatError` for a tree that another program uses."""
    if await store.get(layout.BROKER_IDS) is not None and await store.get(layout.OURS) is None:
        raise FormatError(
            f"The metadata store is in use by another program, as Apache Kafka: it has {layout.BROKER_IDS}, "
            f"but no {layout.OURS}. Nothing was changed. Give the cluster a path of its own, as in "
            "zookeeper.connect=host:port/riverlog."
        )


async def _create_missing(store: MetadataStore, wanted: Mapping[str, bytes]) -> None:
    """In one step, since each costs a sync of the disk. Looks again when another node came first, or when it
    is not known whether the step was made."""
    while True:
        missing = [Create(path, data) for path, data in wanted.items() if await store.get(path) is None]
        if not missing:
            return
        try:
            await store.multi(missing)
        except (NodeExistsError, OutcomeUnknownError):
            continue
