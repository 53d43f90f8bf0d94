"""Records that a read was to give and that are gone."""

from riverlog.model.errors import RiverlogError
from riverlog.model.ids import TopicPartition


class DataLoss(RiverlogError):  # noqa: N818 - named for what it is
    """Offsets from `start` up to `end`, which is not one of them, are gone; None: all of them."""

    def __init__(self, at: TopicPartition, start: int, end: int | None, why: str) -> None:
        if end is None:
            offsets = f"offsets from {start} on"
        else:
            offsets = f"offset {start}" if end == start + 1 else f"offsets {start} to {end - 1}"
        super().__init__(
            f"data loss: {offsets} of partition {at.partition} of topic {at.topic} cannot be read: {why}; "
            "set option failOnDataLoss to false to go on without them"
        )
