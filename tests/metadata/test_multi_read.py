"""Many reads in one request to ZooKeeper: the bytes, and what becomes of those who ask at the same time."""

import struct

import pytest

from riverlog.metadata.multi_read import (
    BYTES_MAX,
    QUESTIONS_MAX,
    Content,
    MultiRead,
    Question,
    Refused,
    in_requests,
)

STAT = struct.pack("!qqqqiiiqiiq", 11, 12, 13, 14, 3, 5, 6, 77, 4, 2, 99)
END = struct.pack("!i?i", -1, True, -1)


def test_each_question_is_a_part_of_the_request() -> None:
    request = MultiRead([Question("/a"), Question("/é", for_children=True)])
    expected = struct.pack("!i?i", 4, False, -1) + struct.pack("!i", 2) + b"/a\0"
    expected += struct.pack("!i?i", 8, False, -1) + struct.pack("!i", 3) + "/é".encode() + b"\0"
    assert request.serialize() == expected + END


@pytest.mark.parametrize("offset", [0, 16])
def test_answers_are_told_apart_by_their_types(offset: int) -> None:
    answer = struct.pack("!i?i", 4, False, 0) + struct.pack("!i", 4) + b"data" + STAT
    answer += struct.pack("!i?i", -1, False, -101) + struct.pack("!i", -101)
    answer += struct.pack("!i?i", 8, False, 0) + struct.pack("!i", 2)
    answer += struct.pack("!i", 1) + b"x" + struct.pack("!i", 2) + "é".encode()
    answer += struct.pack("!i?i", 4, False, 0) + struct.pack("!i", -1) + STAT
    assert MultiRead.deserialize(bytes(offset) + answer + END, offset) == [
        Content(b"data", 3, 11, 12, 77, 2),
        Refused(-101),
        ["x", "é"],
        Content(b"", 3, 11, 12, 77, 2),
    ]


def test_a_request_has_no_more_questions_and_bytes_than_a_server_takes() -> None:
    chroot, longest = "/kafka", "/" + "x" * BYTES_MAX
    short = [f"/{number}" for number in range(QUESTIONS_MAX + 1)]
    long = [f"/{number:02d}{'é' * 10_000}" for number in range(60)]
    for paths, count in ((short, 2), (long, 3), ([*short[:2], longest, *short[:2]], 3), ([], 0)):
        pieces = list(in_requests(paths, chroot))
        assert [path for piece in pieces for path in piece] == paths
        assert len(pieces) == count
        for piece in pieces:
            request = MultiRead([Question(chroot + path) for path in piece])
            asked = sum(each.size_bytes for each in request.questions)
            assert asked + 9 == len(request.serialize())
            assert len(piece) <= QUESTIONS_MAX
            assert asked <= BYTES_MAX or piece == [longest]
