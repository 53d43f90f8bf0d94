"""Topics that a broker makes by itself, because a client asked for them: here or by way of the controller.

What cannot be made is logged, now and then; whoever asks finds no topic, which is what clients are told. Not
here: what such topics look like (`controller.internal_topics`).
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from riverlog.broker.exchange.rate_limited_log import RateLimitedLog
from riverlog.broker.shared.forwarding import Forwarding
from riverlog.controller.client import ControllerClient
from riverlog.controller.decisions.refusals import Refusal
from riverlog.controller.decisions.topics import NewTopic
from riverlog.metadata import layout
from riverlog.metadata.follower import MetadataFollower
from riverlog.model.clock import Clock
from riverlog.model.errors import ErrorCode
from riverlog.model.metadata_store import StoreError
from riverlog.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

_logger = logging.getLogger(__name__)
_SEEN_WITHIN_S: Final = 2.0


class TopicMaking:
    def __init__(
        self,
        controller: ControllerClient,
        follower: MetadataFollower,
        forwarding: Forwarding | None,
        clock: Clock,
    ) -> None:
        self._controller = controller
        self._follower = follower
        self._forwarding = forwarding
        self._log = RateLimitedLog(_logger, clock.monotonic_s)

    async def make(self, wanted: Sequence[NewTopic]) -> None:
        """Returns when this broker's image shows those that were made, as a rule."""
        if self._forwarding is None or self._forwarding.is_here:
            outcomes = await self._controller.create_topics(wanted)
            for topic, outcome in zip(wanted, outcomes, strict=True):
                if isinstance(outcome, Refusal):
                    self._note(topic.name, outcome.error, outcome.message)
            return
        request = CreateTopicsRequest(
            topics=[_creatable(topic) for topic in wanted],
            timeout_ms=int(self._forwarding.timeout_s * 1000),
        )
        reply = await self._forwarding.ask(request, CreateTopicsResponse)
        if reply is not None:
            for result in reply.topics:
                self._note(result.name, ErrorCode(result.error_code), result.error_message)
            await self._until_seen([each.name for each in reply.topics if each.error_code == ErrorCode.NONE])

    async def _until_seen(self, names: Sequence[str]) -> None:
        with suppress(TimeoutError, StoreError):
            seen = self._follower.refresh(map(layout.topic, names))
            await asyncio.wait_for(seen, _SEEN_WITHIN_S)

    def _note(self, name: str, error: ErrorCode, message: str | None) -> None:
        if error not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            self._log.warn("topic %s was asked for and cannot be made: %s", name, message or error.name)


def _creatable(topic: NewTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=-1 if topic.partitions is None else topic.partitions,
        replication_factor=-1 if topic.replication_factor is None else topic.replication_factor,
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
    )
