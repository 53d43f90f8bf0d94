"""Whether what listens at an address speaks Kafka's protocol. librdkafka would only say that time ran out."""

import socket
import struct
from typing import Final

# ApiVersions in version 0, which every broker answers: size, key, version, correlation id, no client id.
_CORRELATION_ID: Final = 0x52495645
_QUESTION: Final = struct.pack(">ihhih", 10, 18, 0, _CORRELATION_ID, -1)
_ANSWER_WAIT_S: Final = 1.0
_TLS_ALERT: Final = b"\x15\x03"


def what_answers(connection: socket.socket) -> str | None:
    """None for a broker, or for what says nothing: that may be a broker that is busy."""
    connection.settimeout(_ANSWER_WAIT_S)
    try:
        connection.sendall(_QUESTION)
        head = connection.recv(8, socket.MSG_WAITALL)
    except TimeoutError:
        return None
    except ConnectionError:
        head = b""
    if len(head) == 8 and struct.unpack(">i", head[4:])[0] == _CORRELATION_ID:
        return None
    if head.startswith(_TLS_ALERT):
        return "it speaks TLS; name that with -X security.protocol=ssl (or sasl_ssl)"
    if head.startswith(b"HTTP"):
        return "an HTTP server answers, and no Kafka broker"
    if not head:
        return (
            "it closes the connection: no Kafka broker, or one that expects TLS or takes no more connections"
        )
    return "something answers that does not speak Kafka's protocol"
