"""Records that a read was to give and that are gone."""

import logging

from riverlog.model.errors import RiverlogError
from riverlog.model.ids import TopicPartition

_log = logging.getLogger(__name__)


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


def tell_loss(loss: DataLoss, *, is_allowed: bool) -> None:
    """An error, or a warning where the user has set failOnDataLoss to false."""
    if not is_allowed:
        raise loss from None
    _log.warning("%s", loss)


class BackwardRange(RiverlogError):  # noqa: N818 - named for what it is
    """A batch read that begins after its own end."""

    def __init__(self, at: TopicPartition, start: int, end: int) -> None:
        super().__init__(
            f"the batch would begin at offset {start} of partition {at.partition} of topic {at.topic}, after "
            f"its end at {end}, which is the end of the log unless you gave another; correct where the batch "
            "begins or ends"
        )
