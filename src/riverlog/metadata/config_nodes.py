"""Where the settings of a resource stand in the metadata store. Pure.

Topics and brokers stand where Kafka kept them in ZooKeeper; groups and client metrics, which came later,
stand beside them. Names are percent-encoded, as Kafka did with users, since a group id can hold a slash.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, unquote

from riverlog.metadata import layout
from riverlog.metadata.image import ConfigResource, ResourceType

CONFIG_ROOTS: Final[Mapping[str, ResourceType]] = {
    layout.TOPIC_CONFIGS: ResourceType.TOPIC,
    layout.BROKER_CONFIGS: ResourceType.BROKER,
    layout.GROUP_CONFIGS: ResourceType.GROUP,
    layout.CLIENT_METRICS_CONFIGS: ResourceType.CLIENT_METRICS,
}
_ROOT_OF: Final = {kind: root for root, kind in CONFIG_ROOTS.items()}


def config_path(resource: ConfigResource) -> str:
    return f"{_ROOT_OF[resource.type]}/{entry_of(resource)}"


def entry_of(resource: ConfigResource) -> str:
    """The last name of the path."""
    return quote(resource.name, safe="") if resource.name else layout.DEFAULT_ENTITY


def resource_at(root: str, entry: str) -> ConfigResource:
    return ConfigResource(CONFIG_ROOTS[root], "" if entry == layout.DEFAULT_ENTITY else unquote(entry))
