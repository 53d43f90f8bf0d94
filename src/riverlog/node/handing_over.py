"""How a node leaves its cluster: others lead what it leads, before it stops serving."""

import asyncio
from contextlib import suppress
from typing import Final

from riverlog.controller.decisions.leadership import leads_what_others_could
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.registrar import Registrar
from riverlog.model.ids import NodeId
from riverlog.model.metadata_store import StoreError

_GOODBYE_S: Final = 1.0
_HAND_OVER_S: Final = 30.0


async def hand_over(follower: MetadataFollower, registrar: Registrar, node_id: NodeId) -> None:
    """The others see that this broker is about to go, if the store is there to tell them. Ends when it leads
    nothing that another could lead."""
    changed = asyncio.Event()
    follower.subscribe(lambda delta: changed.set())
    with suppress(StoreError, TimeoutError):
        await asyncio.wait_for(registrar.announce_shutdown(), _GOODBYE_S)
        async with asyncio.timeout(_HAND_OVER_S):
            while leads_what_others_could(follower.image, node_id):
                await changed.wait()
                changed.clear()
