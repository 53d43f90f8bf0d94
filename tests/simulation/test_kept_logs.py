"""Which logs the simulator holds a start to."""

from uuid import UUID

import pytest

from riverlog.model.ids import TopicId, TopicPartition
from riverlog.storage.files.partition_metadata import write_topic_id
from riverlog.testing.simulated_disk import SimulatedDisk
from riverlog.testing.simulation.checks.kept_logs import identified_logs

_TOPIC_ID = TopicId(UUID(int=7))
_PATH = f"/data/{TopicPartition('t', 0)}"


def _disk() -> SimulatedDisk:
    disk = SimulatedDisk()
    disk.make_directories(_PATH)
    write_topic_id(disk, _PATH, _TOPIC_ID)
    return disk


def test_a_log_that_says_which_topic_it_is_of_is_to_be_kept() -> None:
    assert identified_logs(_disk(), ["/data"]) == {_PATH: _TOPIC_ID}


@pytest.mark.parametrize(("start", "length"), [(0, 7), (9, 1), (12, 3), (30, 5)])
def test_a_log_whose_topic_id_a_power_cut_has_torn_is_nobody_s(start: int, length: int) -> None:
    """Of a file that was written piece by piece any of them may be lost, not only what stands at its end."""
    disk = _disk()
    torn = disk.open(f"{_PATH}/partition.metadata")
    torn.pwrite(bytes(length), start)
    torn.close()
    assert identified_logs(disk, ["/data"]) == {}
