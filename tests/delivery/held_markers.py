"""`riverlog` whose transaction markers wait while a certain file is there.

On one node the decision to end a transaction and its markers stand in the log within microseconds; a kill
between the two would be luck. Here the decision is written as ever, and the markers wait for the kill.
"""

import asyncio
import os

from riverlog.cli.main import main
from riverlog.coordinator.transactions.local_markers import LocalMarkerWriter
from riverlog.coordinator.transactions.markers import Marker, MarkerWritten
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition

_HOLD_FILE = os.environ["DELIVERY_HOLD_FILE"]
_write = LocalMarkerWriter.write


def write_unless_held(
    self: LocalMarkerWriter, partition: TopicPartition, marker: Marker, *, may_be_written: bool = False
) -> MarkerWritten:
    if not os.path.exists(_HOLD_FILE):
        return _write(self, partition, marker, may_be_written=may_be_written)
    held: MarkerWritten = asyncio.get_running_loop().create_future()
    held.set_result(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return held


if __name__ == "__main__":
    LocalMarkerWriter.write = write_unless_held  # type: ignore[method-assign]
    main()
