"""Single brokers, asked directly, for what confluent-kafka has no call for.

Which brokers there are and who leads comes from confluent-kafka; the questions go over plain connections,
one for each broker, closed at the end. What fails comes out as `CommandError`.
"""

from collections.abc import Collection
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from riverlog.cli.asking.connection import Connection
from riverlog.cli.failures import CHECK_ADDRESS, CommandError, ExitCode
from riverlog.model.errors import ErrorCode
from riverlog.model.network import Address

if TYPE_CHECKING:
    from riverlog.client.broker_connection import BrokerConnection
    from riverlog.wire.apis import ApiKey
    from riverlog.wire.schema import Message


class Brokers:
    def __init__(self, connection: Connection, silent: Collection[int] = ()) -> None:
        """Those that are silent are not waited for."""
        self._connection = connection
        self._silent = silent
        self._stack = ExitStack()
        self._open: dict[Address, BrokerConnection] = {}

    def __enter__(self) -> Self:
        protocol = self._connection.properties.get("security.protocol", "plaintext")
        if protocol.lower() != "plaintext":
            raise CommandError(
                f"this command cannot talk to brokers over {protocol} yet",
                remedy="use a listener without TLS and SASL",
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def addresses(self) -> dict[int, Address]:
        """Of all brokers, by their number."""
        brokers = self._connection.metadata().brokers.values()
        return {broker.id: Address(str(broker.host), int(broker.port)) for broker in brokers}

    def ask(
        self, address: Address, key: "ApiKey", request: "Message", *, version_max: int | None = None
    ) -> Any:
        from riverlog.client.broker_connection import BrokerConnection
        from riverlog.wire.codec import MalformedMessage

        if self._silent and address in {self.addresses().get(each) for each in self._silent}:
            raise CommandError(f"broker {address}: no answer", remedy=CHECK_ADDRESS, code=ExitCode.CONNECTION)
        try:
            if address not in self._open:
                self._open[address] = self._stack.enter_context(
                    BrokerConnection(address, timeout_s=self._connection.timeout_s, client_id="riverlog-cli")
                )
            return self._open[address].ask(key, request, version_max=version_max)
        except MalformedMessage as error:
            raise CommandError(f"broker {address} gave an answer that cannot be read: {error}") from error
        except OSError as error:
            reason = error.strerror or str(error)
            raise CommandError(
                f"broker {address}: {reason}", remedy=CHECK_ADDRESS, code=ExitCode.CONNECTION
            ) from error


class RefusalError(CommandError):
    def __init__(self, message: str, *, remedy: str, code: ExitCode, error: ErrorCode | None) -> None:
        super().__init__(message, remedy=remedy, code=code)
        self.error = error
        """None for one that is not known here."""


def refused(code: int, doing: str) -> RefusalError:
    """The failure that an error code of a broker stands for."""
    meanings = {
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: (
            ExitCode.NOT_FOUND,
            "see what is there with `riverlog txn list`",
        ),
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: (
            ExitCode.NOT_FOUND,
            "see what is there with `riverlog topic list`",
        ),
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: (ExitCode.AUTHENTICATION, ""),
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED: (ExitCode.AUTHENTICATION, ""),
        ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: (
            ExitCode.FAILURE,
            "its members read the topic; stop them, or have them subscribe to others",
        ),
        ErrorCode.COORDINATOR_NOT_AVAILABLE: (ExitCode.CONNECTION, CHECK_ADDRESS),
    }
    known = ErrorCode(code) if code in set(ErrorCode) else None
    exit_code, remedy = meanings.get(known, (ExitCode.FAILURE, "")) if known else (ExitCode.FAILURE, "")
    name = str(code) if known is None else known.name
    return RefusalError(f"{doing}: {name}", remedy=remedy, code=exit_code, error=known)
