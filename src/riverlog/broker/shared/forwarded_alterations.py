"""Alterations of settings as one broker asks the controller for them. Not here: what may be altered."""

from collections.abc import Sequence
from typing import NamedTuple

from riverlog.broker.shared.forwarding import Forwarding
from riverlog.controller.decisions.refusals import Refusal
from riverlog.model.config.alter import Change
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages import alter_configs as replacing
from riverlog.wire.messages import incremental_alter_configs as incremental

_TIMED_OUT = Refusal(ErrorCode.REQUEST_TIMED_OUT, "The controller did not answer in time.")


class Alteration(NamedTuple):
    kind: int
    name: str
    changes: Sequence[Change]


async def forward_alterations(
    forwarding: Forwarding, alterations: Sequence[Alteration], replaces: bool, validate_only: bool
) -> list[Refusal | None] | None:
    """`None` for each that the controller has made, in the same order; `None` for all of it when this broker
    has become the controller meanwhile."""
    reply: replacing.AlterConfigsResponse | incremental.IncrementalAlterConfigsResponse | None
    if replaces:
        reply = await forwarding.ask(_replacing(alterations, validate_only), replacing.AlterConfigsResponse)
    else:
        request = _incremental(alterations, validate_only)
        reply = await forwarding.ask(request, incremental.IncrementalAlterConfigsResponse)
    if reply is None and forwarding.is_here:
        return None
    if reply is None:
        return [_TIMED_OUT] * len(alterations)
    outcomes = {
        (each.resource_type, each.resource_name): Refusal(ErrorCode(each.error_code), each.error_message)
        for each in reply.responses
    }
    made = [outcomes.get((each.kind, each.name), _TIMED_OUT) for each in alterations]
    return [None if each.error is ErrorCode.NONE else each for each in made]


def _replacing(alterations: Sequence[Alteration], validate_only: bool) -> replacing.AlterConfigsRequest:
    return replacing.AlterConfigsRequest(
        resources=[
            replacing.AlterConfigsResource(
                resource_type=each.kind,
                resource_name=each.name,
                configs=[
                    replacing.AlterableConfig(name=change.name, value=change.value) for change in each.changes
                ],
            )
            for each in alterations
        ],
        validate_only=validate_only,
    )


def _incremental(
    alterations: Sequence[Alteration], validate_only: bool
) -> incremental.IncrementalAlterConfigsRequest:
    return incremental.IncrementalAlterConfigsRequest(
        resources=[
            incremental.AlterConfigsResource(
                resource_type=each.kind,
                resource_name=each.name,
                configs=[
                    incremental.AlterableConfig(
                        name=change.name, config_operation=change.operation, value=change.value
                    )
                    for change in each.changes
                ],
            )
            for each in alterations
        ],
        validate_only=validate_only,
    )
