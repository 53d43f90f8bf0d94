"""What AlterConfigs and IncrementalAlterConfigs have in common: resources, each refused or changed.

Resources that occur twice are refused. Log levels are changed in this process and are not kept. The rest is
the controller's, which is asked where it is another broker.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from riverlog.broker.shared.forwarded_alterations import Alteration, forward_alterations
from riverlog.broker.shared.forwarding import Forwarding
from riverlog.broker.shared.log_levels import LogLevels
from riverlog.controller.client import ControllerClient
from riverlog.controller.decisions.configs import decide_config, decide_resource
from riverlog.controller.decisions.refusals import Refusal
from riverlog.controller.setting_changes import ConfigChange
from riverlog.metadata.image import ClusterImage, ConfigResource, ResourceType
from riverlog.model.config.alter import Change, refused_at_sight
from riverlog.model.config.effective import BrokerLayers
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId

Layers = Callable[[], BrokerLayers]
"""The broker's settings as they are now."""


class ConfigAlterations:
    def __init__(
        self,
        controller: ControllerClient,
        layers: Layers,
        log_levels: LogLevels,
        node_id: NodeId,
        forwarding: Forwarding | None = None,
    ) -> None:
        self._controller = controller
        self._layers = layers
        self._log_levels = log_levels
        self._node_id = node_id
        self._forwarding = forwarding

    async def carry_out(
        self,
        alterations: Sequence[Alteration],
        *,
        replaces: bool,
        validate_only: bool,
        is_forwarded: bool = False,
    ) -> list[Refusal | None]:
        """`None` for each that was made, in the same order. With `replaces`, earlier settings go.

        What another broker has sent on, it has looked at: settings of its own are among it."""
        times = Counter((each.kind, each.name) for each in alterations)
        outcomes: list[Refusal | None] = [None] * len(alterations)
        changes: dict[int, ConfigChange] = {}
        for position, each in enumerate(alterations):
            if times[each.kind, each.name] > 1:
                message = "The same resource occurs more than once."
                outcomes[position] = Refusal(ErrorCode.INVALID_REQUEST, message)
                continue
            resource = self._resource(each, replaces, is_forwarded)
            if isinstance(resource, Refusal):
                outcomes[position] = resource
            elif resource.type is ResourceType.BROKER_LOGGER:
                outcomes[position] = self._log_levels.change(each.changes, validate_only=validate_only)
            else:
                changes[position] = self._change(resource, each.changes, replaces)
        made: list[Refusal | None] | None = None
        if self._forwarding is not None and not self._forwarding.is_here and changes:
            kept = [alterations[position] for position in changes]
            made = await forward_alterations(self._forwarding, kept, replaces, validate_only)
        if made is None:
            made = await self._controller.alter_configs(list(changes.values()), validate_only=validate_only)
        for position, outcome in zip(changes, made, strict=True):
            outcomes[position] = outcome
        return outcomes

    def _resource(self, each: Alteration, replaces: bool, is_forwarded: bool) -> ConfigResource | Refusal:
        if refused := refused_at_sight(each.changes):
            return Refusal(refused.error, refused.message)
        if replaces and each.kind == ResourceType.BROKER_LOGGER:
            return Refusal(ErrorCode.INVALID_REQUEST, "Log levels cannot be replaced as a whole.")
        return decide_resource(each.kind, each.name, None if is_forwarded else self._node_id)

    def _change(self, resource: ConfigResource, changes: Sequence[Change], replaces: bool) -> ConfigChange:
        def decide(image: ClusterImage) -> Mapping[str, str] | Refusal:
            return decide_config(image, resource, changes, self._layers(), replaces=replaces)

        return ConfigChange(resource, decide)
