"""One plain connection to one broker: a request goes out in the newest version that both sides know.

Blocking, with a deadline for each answer. An `OSError` is a connection that failed; after any exception the
connection is of no more use.
"""

import socket
from types import TracebackType
from typing import Any, Final, Self

from riverlog.model.errors import RiverlogError
from riverlog.model.network import Address
from riverlog.wire.apis import APIS, ApiKey
from riverlog.wire.codec import decode
from riverlog.wire.framing import RequestHeader, decode_response_header, encode_request
from riverlog.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from riverlog.wire.schema import Message

ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
_VERSION_OF_API_VERSIONS: Final = 0
"""The one that every broker answers."""


class UnsupportedApiError(RiverlogError):
    """The broker does not serve an API, or in no version that we know."""


class BrokerConnection:
    def __init__(self, address: Address, *, timeout_s: float, client_id: str) -> None:
        self._socket = socket.create_connection(address, timeout_s)
        self._client_id = client_id
        self._asked = 0
        self._served: dict[int, tuple[int, int]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def ask(self, key: ApiKey, request: Message, *, version_max: int | None = None) -> Any:
        """The response message of this API. Fields of the request that the version lacks are left out."""
        return self._exchange(key, self.version(key, version_max), request)

    def ask_raw(self, key: ApiKey, version: int, request: Message) -> tuple[memoryview, int]:
        """The response as bytes, and where its body begins, for those who read it by hand."""
        data = self._answer(key, version, request)
        return memoryview(data), self._body(key, version, data)

    def served(self, key: ApiKey) -> tuple[int, int]:
        """The first and the last version that the broker serves; the last is before the first when none."""
        if self._served is None:
            self._served = self._ask_what_is_served()
        return self._served.get(key, (0, -1))

    def version(self, key: ApiKey, version_max: int | None = None) -> int:
        """The newest that both sides know."""
        api = APIS[key]
        first, last = self.served(key)
        version = min(api.max_version, last, api.max_version if version_max is None else version_max)
        if version < max(first, api.min_version):
            raise UnsupportedApiError(f"The broker does not serve {api.name} in a version known here.")
        return version

    def _ask_what_is_served(self) -> dict[int, tuple[int, int]]:
        reply: ApiVersionsResponse = self._exchange(
            ApiKey.API_VERSIONS, _VERSION_OF_API_VERSIONS, ApiVersionsRequest()
        )
        return {each.api_key: (each.min_version, each.max_version) for each in reply.api_keys}

    def _exchange(self, key: ApiKey, version: int, request: Message) -> Any:
        data = self._answer(key, version, request)
        response, _ = decode(APIS[key].response, version, data, self._body(key, version, data))
        return response

    def _answer(self, key: ApiKey, version: int, request: Message) -> bytearray:
        self._asked += 1
        self._socket.sendall(
            encode_request(RequestHeader(key, version, self._asked, self._client_id), request)
        )
        size = int.from_bytes(self._receive(4), signed=True)
        if not 4 <= size <= ANSWER_BYTES_MAX:
            raise ConnectionError(f"the broker announced an answer of {size} bytes")
        return self._receive(size)

    def _body(self, key: ApiKey, version: int, data: bytearray) -> int:
        answered, position = decode_response_header(key, version, data)
        if answered != self._asked:
            raise ConnectionError("the broker answered something that was not asked")
        return position

    def _receive(self, size: int) -> bytearray:
        # Memory of this size costs nothing until it is written to, so a false claim is cheap.
        data = bytearray(size)
        room = memoryview(data)
        received = 0
        while received < size:
            piece = self._socket.recv_into(room[received:])
            if not piece:
                raise ConnectionError("the broker closed the connection")
            received += piece
        return data
