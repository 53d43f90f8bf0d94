"""Frames cut out of a stream: each is what was sent, wherever the memory for it comes from."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riverlog.client.core.frames import Frames

LARGE = 10_000


def framed(*frames: bytes) -> bytes:
    return b"".join(len(frame).to_bytes(4) + frame for frame in frames)


def fed(
    frames: Frames,
    data: bytes,
    step: int = 1 << 20,
    on_frame: Callable[[memoryview], None] = lambda frame: None,
) -> list[memoryview]:
    """What is cut, as a driver feeds it; `on_frame` hears of each before more is received."""
    found: list[memoryview] = []
    while data:
        room = frames.room()
        count = min(len(room), len(data), step)
        room[:count] = data[:count]
        data = data[count:]
        if frames.received(count):
            for frame in frames.cut():
                on_frame(frame)
                found.append(frame)
    return found


@given(
    st.lists(st.integers(4, 9_000), max_size=6),
    st.integers(1, 5_000),
    st.sampled_from([0, 5_000, 8_000, 1 << 20]),
)
def test_frames_are_what_was_sent(sizes: list[int], step: int, reused_bytes_max: int) -> None:
    sent = [bytes([number]) * size for number, size in enumerate(sizes)]
    frames = Frames(1 << 20, reused_bytes_max)
    cut: list[bytes] = []
    fed(frames, framed(*sent), step, lambda frame: cut.append(bytes(frame)))
    assert cut == sent


@pytest.mark.parametrize(("reused_bytes_max", "is_same"), [(0, False), (LARGE - 1, False), (LARGE, True)])
def test_memory_is_used_again_only_where_it_may_be_and_for_frames_that_fit(
    reused_bytes_max: int, is_same: bool
) -> None:
    frames = Frames(1 << 20, reused_bytes_max)
    [first] = fed(frames, framed(b"a" * LARGE))
    [second] = fed(frames, framed(b"b" * LARGE))
    assert bytes(second) == b"b" * LARGE
    assert (first.obj is second.obj) is is_same


def test_small_frames_that_come_at_once_do_not_share_memory() -> None:
    cut = fed(Frames(1 << 20, 1 << 20), framed(b"first", b"second", b"third"))
    assert [bytes(frame) for frame in cut] == [b"first", b"second", b"third"]
