"""Assignors that the coordinator runs for groups of the consumer protocol (KIP-848).

An assignor is a pure function from members, with what they subscribe to and what they are meant to have now,
to what they shall have. Both keep as much as their rule allows where it is. Racks are not considered, as in
Apache Kafka's assignors. Not here: how members get from one assignment to the next.
"""

from collections.abc import Callable, Mapping
from typing import Final

from riverlog.coordinator.groups.assignors.range import assign_ranges
from riverlog.coordinator.groups.assignors.subscribers import Assignment, Subscriber
from riverlog.coordinator.groups.assignors.uniform import assign_uniformly
from riverlog.model.ids import TopicId

Assignor = Callable[[Mapping[str, Subscriber], Mapping[TopicId, int]], dict[str, Assignment]]

ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": assign_uniformly, "range": assign_ranges}
"""By the name under which a member or the configuration asks for them."""

__all__ = ["ASSIGNORS", "Assignment", "Assignor", "Subscriber"]
