"""A broker's registration: one step that replaces what it left behind, or finds its number taken. Decides and
writes; who keeps it up is `registrar`.

Two nodes are written at once: a persistent one, whose version is the broker's epoch, and the ephemeral one
that says that it is alive. An ephemeral node of another session is taken over only if it is provably ours: it
was made on this machine, since it was last started, with one of our data directories, whose locks we hold, so
that its owner is dead. A copy of the machine was started on its own, and a registration that is younger than
this process's last one is that of a copy, too.
Brokers of releases that cannot be in one cluster do not register beside each other.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Final, NamedTuple
from uuid import UUID

from riverlog.metadata import layout, payloads
from riverlog.metadata.outcomes import write_multi
from riverlog.metadata.payloads import NOTHING_OFFLINE, BrokerNode, RegistrationNode
from riverlog.metadata.restarts import Restart
from riverlog.model.errors import FormatError
from riverlog.model.features import HIGHEST_LEVELS
from riverlog.model.ids import BrokerEpoch, NodeId, TopicId
from riverlog.model.log_end import NO_LOG_ENDS, LogEnds
from riverlog.model.metadata_store import (
    BadVersionError,
    Create,
    Delete,
    MetadataStore,
    NodeExistsError,
    NoNodeError,
    Operation,
    Set,
    Versioned,
)
from riverlog.model.network import Address

FORMAT: Final = 1
"""Of what brokers of this release write for each other."""
OLDEST_FORMAT: Final = 1
"""Of brokers that this release can be in one cluster with."""


class Registrant(NamedTuple):
    """Who registers."""

    node_id: NodeId
    endpoints: Mapping[str, Address]
    security: Mapping[str, str]
    rack: str | None
    host: str
    boot_id: str
    directories: tuple[UUID, ...]
    has_unusable: bool = False
    """There are more directories, which could not be opened."""
    offline: Mapping[TopicId, tuple[int, ...]] = NOTHING_OFFLINE
    """Partitions that are in a directory which has failed."""
    log_ends: LogEnds = NO_LOG_ENDS

    @property
    def registration(self) -> RegistrationNode:
        address = str(next(iter(self.endpoints.values()), ""))
        return RegistrationNode(
            self.directories,
            self.boot_id,
            self.host,
            address,
            FORMAT,
            OLDEST_FORMAT,
            HIGHEST_LEVELS,
            self.endpoints,
            self.rack,
        )


class Taken(NamedTuple):
    """The number is another process's."""

    by: str
    """Where it is to be found."""


async def register(
    store: MetadataStore,
    me: Registrant,
    now_ms: int,
    *,
    last_epoch: BrokerEpoch | None = None,
    restart: Restart | None = None,
) -> BrokerEpoch | Taken:
    """The broker's epoch. Does nothing where this session is registered already. `last_epoch` is under which
    this process was registered before, if it was; `restart` is what comes first if it was not. Raises
    `FormatError` when this release cannot be in the cluster."""
    while True:
        await store.sync()
        known = await store.get(layout.registration(me.node_id))
        alive = await store.get(layout.broker(me.node_id))
        if alive is not None:
            announced = payloads.decode_broker(layout.broker(me.node_id), alive.data)
            if alive.is_mine and known is not None and announced.epoch == known.version:
                return BrokerEpoch(known.version)
            if not alive.is_mine and not _is_ours(me, known, last_epoch):
                return Taken(_where(announced, known))
        await _check_releases(store, me)
        if restart is not None and known is not None and restart.is_needed(known):
            with suppress(NoNodeError, BadVersionError):
                await restart.leave(known, alive)
                restart = None
            continue
        epoch = BrokerEpoch(0 if known is None else known.version + 1)
        try:
            await _write(store, me, known, alive, epoch, now_ms)
        except (NodeExistsError, NoNodeError, BadVersionError):
            continue
        return epoch


async def has_other_boot_id(store: MetadataStore, node_id: NodeId, boot_id: str) -> bool:
    """Whether the machine was started since the broker registered last; call before it does again. Also
    where nobody knows."""
    known = await store.get(layout.registration(node_id))
    if known is None or not boot_id:
        return True
    return payloads.decode_registration(layout.registration(node_id), known.data).boot_id != boot_id


async def _write(
    store: MetadataStore,
    me: Registrant,
    known: Versioned | None,
    alive: Versioned | None,
    epoch: BrokerEpoch,
    now_ms: int,
) -> None:
    path, data = layout.registration(me.node_id), payloads.encode_registration(_remembering(me, known))
    operations: list[Operation] = [
        Create(path, data) if known is None else Set(path, data, known.version),
    ]
    if alive is not None:
        operations.append(Delete(layout.broker(me.node_id), alive.version))
    node = BrokerNode(
        me.endpoints, me.security, me.rack, epoch, me.host, offline=me.offline, log_ends=me.log_ends
    )
    announcement = Create(layout.broker(me.node_id), payloads.encode_broker(node, now_ms), ephemeral=True)
    await write_multi(store, [*operations, announcement], proof=announcement)


def _remembering(me: Registrant, known: Versioned | None) -> RegistrationNode:
    """With the directories that cannot be opened now: they come back with their logs, or are lost then."""
    if known is None or not me.has_unusable:
        return me.registration
    before = payloads.decode_registration(layout.registration(me.node_id), known.data)
    missing = (each for each in before.directories if each not in me.directories)
    return me.registration._replace(directories=(*me.directories, *missing))


def _is_ours(me: Registrant, known: Versioned | None, last_epoch: BrokerEpoch | None) -> bool:
    if known is None or (last_epoch is not None and known.version > last_epoch):
        return False
    before = payloads.decode_registration(layout.registration(me.node_id), known.data)
    is_same_machine = before.host == me.host and before.boot_id == me.boot_id
    return is_same_machine and not set(before.directories).isdisjoint(me.directories)


def _where(announced: BrokerNode, known: Versioned | None) -> str:
    address = next(iter(announced.endpoints.values()), None)
    return "a program that is not Riverlog" if known is None else str(address)


async def _check_releases(store: MetadataStore, me: Registrant) -> None:
    """Of those that are alive; who is away is checked when it comes back."""
    levels = await store.get(layout.FEATURES)
    if levels is not None:
        for name, level in payloads.decode_features(layout.FEATURES, levels.data).items():
            if level > HIGHEST_LEVELS.get(name, 0):
                raise FormatError(
                    f"The cluster has feature {name} at level {level}; this release knows it up to "
                    f"{HIGHEST_LEVELS.get(name, 0)}. Use a newer release, or lower the level first."
                )
    for name in await store.children(layout.BROKER_IDS):
        path = f"{layout.REGISTRATIONS}/{name}"
        node = await store.get(path) if name != str(me.node_id) else None
        if node is not None:
            _check_release(name, payloads.decode_registration(path, node.data))


def _check_release(name: str, other: RegistrationNode) -> None:
    if other.oldest_format > FORMAT:
        raise FormatError(
            f"Broker {name} is of a release that needs format {other.oldest_format} of all brokers; this one "
            f"has {FORMAT}. Use a newer release here."
        )
    if other.format < OLDEST_FORMAT:
        raise FormatError(
            f"Broker {name} is of a release with format {other.format}; this one needs {OLDEST_FORMAT} of "
            "all brokers. Use a newer release there first."
        )
