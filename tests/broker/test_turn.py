"""Replies of one turn leave together where clients come in crowds, and at once where one comes alone."""

import struct

import pytest

from riverlog.broker.exchange.context import Parts
from riverlog.broker.exchange.turn import HELD_MAX, LOOK_EVERY, LoopTurn
from tests.broker.sockets import Scripted, echo, frame, read_frame, run, served
from tests.waiting import loop_turns, until

CLIENTS = 80
ROUNDS = 25


class Recorder:
    """Stands for a connection: what it was told to send, and when."""

    def __init__(self, name: str, log: list[tuple[str, Parts]]) -> None:
        self._name = name
        self._log = log

    def send(self, answer: Parts) -> None:
        self._log.append((self._name, answer))


def test_what_is_held_leaves_in_order_at_the_end_of_the_turn() -> None:
    async def main() -> None:
        turn, sent = LoopTurn(), list[tuple[str, Parts]]()
        connections = [Recorder(name, sent) for name in "abc"]
        for connection in connections:
            turn.hold(connection, [b"reply"])
        assert sent == []
        await loop_turns()
        assert sent == [("a", [b"reply"]), ("b", [b"reply"]), ("c", [b"reply"])]

    run(main)


def test_a_full_hand_leaves_before_the_turn_ends() -> None:
    async def main() -> None:
        turn, sent = LoopTurn(), list[tuple[str, Parts]]()
        for number in range(2 * HELD_MAX + 1):
            turn.hold(Recorder(str(number), sent), [b"reply"])
        assert [name for name, _ in sent] == [str(number) for number in range(2 * HELD_MAX)]
        await loop_turns()
        assert len(sent) == 2 * HELD_MAX + 1
        assert turn.has_many_replies

    run(main)


@pytest.mark.parametrize(("replies", "has_many_replies"), [(1, False), (2, True), (50, True)])
def test_a_turn_is_crowded_with_more_than_one_reply(replies: int, has_many_replies: bool) -> None:
    async def main() -> None:
        turn, sent = LoopTurn(), list[tuple[str, Parts]]()
        for _ in range(3):
            for _ in range(replies):
                turn.hold(Recorder("a", sent), [b"reply"])
            await loop_turns()
            assert turn.has_many_replies is has_many_replies
        turn.hold(Recorder("a", sent), [b"reply"])
        await loop_turns()
        assert not turn.has_many_replies

    run(main)


def test_a_crowd_is_answered_each_with_its_own_replies() -> None:
    async def main() -> None:
        async with served(Scripted(echo)) as server:
            clients = [await server.connect() for _ in range(CLIENTS)]
            for number in range(ROUNDS):
                for client, (_, writer) in enumerate(clients):
                    writer.write(frame(struct.pack(">ii", client, number)))
                    if client % 5 == 0:
                        writer.write(frame(struct.pack(">ii", client, -number)))
                for client, (reader, _) in enumerate(clients):
                    assert await read_frame(reader) == struct.pack(">ii", client, number)
                    if client % 5 == 0:
                        assert await read_frame(reader) == struct.pack(">ii", client, -number)
            for _, writer in clients:
                writer.close()
            await until(lambda: len(server.connections) == 0)

    run(main)


def test_a_client_alone_has_every_reply_without_a_further_request() -> None:
    async def main() -> None:
        async with served(Scripted(echo)) as server:
            reader, writer = await server.connect()
            for number in range(3 * LOOK_EVERY):
                writer.write(frame(b"%d" % number))
                assert await read_frame(reader) == b"%d" % number
            writer.close()

    run(main)


def test_who_leaves_before_the_turn_ends_keeps_nobody_from_their_reply() -> None:
    async def main() -> None:
        async with served(Scripted(echo)) as server:
            clients = [await server.connect() for _ in range(CLIENTS)]
            for number in range(ROUNDS):
                for _, writer in clients:
                    writer.write(frame(b"%d" % number))
                _, leaver = clients.pop()
                leaver.transport.abort()
                for reader, _ in clients:
                    assert await read_frame(reader) == b"%d" % number
            for _, writer in clients:
                writer.close()
            await until(lambda: len(server.connections) == 0)

    run(main)


def test_a_reply_that_the_socket_does_not_take_at_once_arrives_whole() -> None:
    long = b"x" * 3_000_000

    async def main() -> None:
        async with served(Scripted(lambda _: [frame(long)])) as server:
            clients = [await server.connect() for _ in range(8)]
            for _ in range(4):
                for _, writer in clients:
                    writer.write(frame(b"more"))
                for reader, _ in clients:
                    assert await read_frame(reader) == long
            for _, writer in clients:
                writer.close()

    run(main)
