"""Where things stand in the metadata store: the paths that Apache Kafka used in ZooKeeper.

Only names; what stands inside a node is in `payloads`. The layout is kept so that the content of an embedded
store can be exported into a ZooKeeper ensemble unchanged.
"""

from typing import Final

BROKER_IDS: Final = "/brokers/ids"
TOPICS: Final = "/brokers/topics"
CONFIG: Final = "/config"
TOPIC_CONFIGS: Final = "/config/topics"
BROKER_CONFIGS: Final = "/config/brokers"
GROUP_CONFIGS: Final = "/config/groups"
CLIENT_METRICS_CONFIGS: Final = "/config/client-metrics"
CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
CLUSTER_ID: Final = "/cluster/id"
PRODUCER_ID_BLOCK: Final = "/latest_producer_id_block"
TOPICS_TO_DELETE: Final = "/admin/delete_topics"
BROKER_SEQUENCE: Final = "/brokers/seqid"
"""Its version is the last number that was given to a broker without one."""
OURS: Final = "/riverlog"
"""What Apache Kafka has no place for. A tree with brokers but without this is not ours."""
REGISTRATIONS: Final = "/riverlog/brokers"
"""What is known of each broker that was ever registered; the version of its node is the broker's epoch."""
DELETED_TOPICS: Final = "/riverlog/deleted"
"""The ids of topics that are gone, for brokers that were away when they went."""
FEATURES: Final = "/feature"
"""Not there until a level is changed."""

_PARTITION_DEPTH: Final = 5
DEFAULT_ENTITY: Final = "<default>"
"""The name under which settings for all brokers are kept."""

PERSISTENT: Final = (
    "/brokers",
    BROKER_IDS,
    TOPICS,
    CONFIG,
    TOPIC_CONFIGS,
    BROKER_CONFIGS,
    GROUP_CONFIGS,
    CLIENT_METRICS_CONFIGS,
    "/config/clients",
    "/config/users",
    "/config/ips",
    "/admin",
    TOPICS_TO_DELETE,
    "/cluster",
    OURS,
    REGISTRATIONS,
    DELETED_TOPICS,
)
"""Nodes that always exist, parents first."""


def broker(node_id: int) -> str:
    return f"{BROKER_IDS}/{node_id}"


def registration(node_id: int) -> str:
    return f"{REGISTRATIONS}/{node_id}"


def topic(name: str) -> str:
    return f"{TOPICS}/{name}"


def partitions(name: str) -> str:
    return f"{TOPICS}/{name}/partitions"


def partition(name: str, index: int) -> str:
    return f"{TOPICS}/{name}/partitions/{index}"


def partition_state(name: str, index: int) -> str:
    return state_of(partition(name, index))


def is_partition(path: str) -> bool:
    """Whether it is the node of one partition, which has its state below it and nothing else."""
    return path.count("/") == _PARTITION_DEPTH and path.startswith(f"{TOPICS}/") and "/partitions/" in path


def state_of(partition_path: str) -> str:
    return f"{partition_path}/state"


def topic_to_delete(name: str) -> str:
    return f"{TOPICS_TO_DELETE}/{name}"


def deleted_topic(topic_id: str) -> str:
    return f"{DELETED_TOPICS}/{topic_id}"


def parent(path: str) -> str:
    """The path above; that of the root is the empty string."""
    if path == "/":
        return ""
    return path[: path.rindex("/")] or "/"


def is_at_or_below(path: str, ancestor: str) -> bool:
    return path == ancestor or ancestor == "/" or path.startswith(ancestor + "/")
