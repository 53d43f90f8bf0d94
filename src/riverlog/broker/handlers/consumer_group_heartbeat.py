"""ConsumerGroupHeartbeat 0-1: a member joins, stays in, or leaves a group of the consumer protocol (KIP-848).

Since 1 the client makes up its member id and may subscribe by a regular expression. What the request must
contain is checked here, everything that depends on the group by the coordinator.
"""

import base64
from collections.abc import Awaitable, Callable
from uuid import UUID

from riverlog.broker.exchange.context import RequestContext
from riverlog.coordinator.groups.consumer.requests import (
    JOIN,
    LEAVE,
    LEAVE_FOR_A_WHILE,
    Beaten,
    Heartbeat,
    HeartbeatRefusal,
    HeartbeatReply,
)
from riverlog.coordinator.groups.coordinator import GroupCoordinator
from riverlog.coordinator.groups.shard import GroupShard
from riverlog.coordinator.runtime.effects import Effects, Token
from riverlog.coordinator.runtime.shard_runtime import ShardAnswer
from riverlog.metadata.follower import MetadataFollower
from riverlog.model.errors import ErrorCode
from riverlog.model.features import GROUP_VERSION
from riverlog.model.ids import TopicId
from riverlog.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)

_OWN_ID_SINCE = 1


class ConsumerGroupHeartbeatHandler:
    def __init__(
        self, groups: GroupCoordinator, follower: MetadataFollower, new_id: Callable[[], UUID]
    ) -> None:
        self._groups = groups
        self._follower = follower
        self._new_id = new_id

    def handle(
        self, request: ConsumerGroupHeartbeatRequest, context: RequestContext
    ) -> ConsumerGroupHeartbeatResponse | Awaitable[ConsumerGroupHeartbeatResponse]:
        config = self._groups.config
        if "consumer" not in config.protocols or not self._follower.image.features.get(GROUP_VERSION):
            return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        problem = _problem(request, context.version)
        if problem is not None:
            return _response(HeartbeatRefusal(ErrorCode.INVALID_REQUEST, problem))
        if request.server_assignor is not None and request.server_assignor not in config.consumer_assignors:
            offered = ", ".join(config.consumer_assignors)
            return _response(
                HeartbeatRefusal(
                    ErrorCode.UNSUPPORTED_ASSIGNOR,
                    f"There is no assignor {request.server_assignor!r}. Ask for one of these: {offered}.",
                )
            )
        beat = self._heartbeat(request, context)

        def decide(shard: GroupShard, token: Token[HeartbeatReply], now_ms: int) -> Effects:
            return shard.consumer.decide_heartbeat(token, beat, now_ms)

        answer = self._groups.run(request.group_id, decide)
        return _response(answer.result()) if answer.done() else _response_later(answer)

    def _heartbeat(self, request: ConsumerGroupHeartbeatRequest, context: RequestContext) -> Heartbeat:
        topics = request.subscribed_topic_names
        return Heartbeat(
            request.group_id,
            request.member_id or _kafka_id(self._new_id()),
            request.member_epoch,
            request.instance_id,
            request.rack_id,
            None if request.rebalance_timeout_ms < 0 else request.rebalance_timeout_ms,
            None if topics is None else tuple(topics),
            request.subscribed_topic_regex,
            request.server_assignor,
            _owned(request.topic_partitions),
            context.client_id or "",
            f"/{context.peer.host}",
        )


def _problem(request: ConsumerGroupHeartbeatRequest, version: int) -> str | None:
    """What is wrong with the request by itself."""
    epoch = request.member_epoch
    needs_id = version >= _OWN_ID_SINCE or epoch > JOIN or epoch == LEAVE
    for is_wrong, problem in (
        (needs_id and not request.member_id, "The member id must not be empty."),
        (not request.group_id, "The group id must not be empty."),
        (request.instance_id == "", "The instance id must not be empty; leave it out instead."),
        (request.rack_id == "", "The rack id must not be empty; leave it out instead."),
        (epoch < LEAVE_FOR_A_WHILE, "There is no such member epoch."),
        (
            epoch == LEAVE_FOR_A_WHILE and request.instance_id is None,
            "Only an instance can leave for a while.",
        ),
    ):
        if is_wrong:
            return problem
    return _problem_of_joining(request) if epoch == JOIN else None


def _problem_of_joining(request: ConsumerGroupHeartbeatRequest) -> str | None:
    if request.rebalance_timeout_ms == -1:
        return "Who joins must say its rebalance time-out."
    if request.topic_partitions is None or request.topic_partitions:
        return "Who joins owns no partitions and must say so with an empty list."
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        return "Who joins must subscribe to topics, by name or by a regular expression."
    return None


def _owned(
    partitions: list[ConsumerGroupHeartbeatRequestTopicPartitions] | None,
) -> dict[TopicId, frozenset[int]] | None:
    if partitions is None:
        return None
    owned: dict[TopicId, frozenset[int]] = {}
    for each in partitions:
        if each.topic_id is not None:
            topic_id = TopicId(each.topic_id)
            owned[topic_id] = owned.get(topic_id, frozenset()).union(each.partitions)
    return owned


def _kafka_id(fresh: UUID) -> str:
    return base64.urlsafe_b64encode(fresh.bytes).decode().rstrip("=")


async def _response_later(answer: ShardAnswer[HeartbeatReply]) -> ConsumerGroupHeartbeatResponse:
    return _response(await answer)


def _response(reply: HeartbeatReply | ErrorCode) -> ConsumerGroupHeartbeatResponse:
    match reply:
        case HeartbeatRefusal(error, message):
            return ConsumerGroupHeartbeatResponse(error_code=error, error_message=message)
        case Beaten():
            return ConsumerGroupHeartbeatResponse(
                member_id=reply.member_id,
                member_epoch=reply.epoch,
                heartbeat_interval_ms=reply.heartbeat_interval_ms,
                assignment=_assignment(reply),
            )
        case _:
            return ConsumerGroupHeartbeatResponse(error_code=reply)


def _assignment(reply: Beaten) -> Assignment | None:
    if reply.assigned is None:
        return None
    return Assignment(
        topic_partitions=[
            ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=topic, partitions=list(indexes))
            for topic, indexes in sorted(reply.assigned.items())
        ]
    )
