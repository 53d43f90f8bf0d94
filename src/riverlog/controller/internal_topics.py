"""Topics that come into being because somebody asked for them, with the defaults or as internal topics.

The internal topics get Kafka's shapes, so that a group or a transaction finds what it expects.
"""

from collections.abc import Mapping
from typing import Final

from riverlog.controller.topics import NewTopic

_SEGMENT_BYTES: Final = str(100 * 1024**2)
_PARTITIONS: Final = 50
_CONFIGS: Final[Mapping[str, Mapping[str, str | None]]] = {
    "__consumer_offsets": {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": _SEGMENT_BYTES,
    },
    "__transaction_state": {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "segment.bytes": _SEGMENT_BYTES,
        "unclean.leader.election.enable": "false",
    },
    "__share_group_state": {
        "cleanup.policy": "delete",
        "compression.type": "uncompressed",
        "retention.ms": "-1",
        "segment.bytes": _SEGMENT_BYTES,
    },
}


def automatic_topic(name: str) -> NewTopic:
    configs = _CONFIGS.get(name)
    if configs is None:
        return NewTopic(name)
    return NewTopic(name, partitions=_PARTITIONS, configs=configs)
