"""Records of an internal topic, read the quick way: the same as read with care."""

import pytest

from riverlog.coordinator.groups.shard import GroupShard
from riverlog.coordinator.runtime.loading import Loading
from riverlog.metadata.image import ClusterImage
from riverlog.model.config.group_config import GroupConfig
from riverlog.records.batch import CorruptBatch, read_header, walk
from riverlog.records.builder import build_batch
from riverlog.records.compression import Codec
from riverlog.records.record import native_records_of, records_of
from riverlog.testing.simulated_disk import SimulatedDisk
from tests.storage.logs import accept, append, open_log


def batch(codec: Codec, count: int) -> bytes:
    return build_batch([(1000 + at, b"k%d" % at, b"v" * at, ()) for at in range(count)], codec=codec)


@pytest.mark.parametrize("codec", list(Codec))
def test_the_quick_way_gives_the_same_records(codec: Codec) -> None:
    piece = b"".join(batch(codec, count) for count in (1, 5, 1, 40))
    for position, header in walk(piece):
        quick = [
            (each.offset, each.timestamp, each.key, each.value)
            for each in native_records_of(piece, position, header)
        ]
        assert quick == [record[:4] for record in records_of(piece, position)]
        assert len(quick) == header.record_count


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
@pytest.mark.parametrize("is_last", [True, False])
def test_damaged_records_are_corrupt(codec: Codec, is_last: bool) -> None:
    damaged = bytearray(batch(codec, 3))
    damaged[61:70] = b"\xff" * 9
    piece = bytes(damaged) if is_last else bytes(damaged) + batch(codec, 3)
    with pytest.raises(CorruptBatch):
        list(native_records_of(piece, 0, read_header(piece)))


@pytest.mark.parametrize(("position", "name"), [(70, "CRC"), (40, "CRC"), (8, "no whole batch")])
def test_a_shard_is_not_brought_up_from_a_damaged_batch(position: int, name: str) -> None:
    disk = SimulatedDisk()
    log = open_log(disk)
    append(log, accept(batch(Codec.NONE, 3)))
    log.state.set_high_watermark(log.log_end_offset)
    loading = Loading(log, GroupShard(GroupConfig(), ClusterImage()))
    piece = loading.next_piece()
    assert piece is not None
    data = bytearray(piece.file.pread(piece.length, piece.position))
    data[position] ^= 0x40
    with pytest.raises(CorruptBatch, match=name):
        loading.replay(data)
