"""Which broker coordinates a group or a transactional id."""

import time
from enum import IntEnum
from typing import Final

from riverlog.cli.asking.brokers import Brokers, refused
from riverlog.cli.asking.connection import Connection
from riverlog.cli.failures import CommandError, ExitCode
from riverlog.client.core.retrying import may_change
from riverlog.model.errors import ErrorCode
from riverlog.model.network import Address

POLL_S: Final = 0.1


class CoordinatorKind(IntEnum):
    """As the protocol numbers them."""

    GROUPS = 0
    TRANSACTIONS = 1


def coordinator_of(
    connection: Connection, brokers: Brokers, name: str, kind: CoordinatorKind, deadline: float
) -> Address:
    """Asked again until the deadline: a cluster that was never used makes its coordinators on demand."""
    from riverlog.wire.apis import ApiKey
    from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest

    request = FindCoordinatorRequest(key=name, key_type=int(kind))
    while True:
        addresses = brokers.addresses()
        if not addresses:
            raise CommandError("the cluster names no brokers", code=ExitCode.CONNECTION)
        anyone = next(iter(addresses.values()))
        # From version 4 on several can be asked for at once, which is not needed here.
        answer = brokers.ask(anyone, ApiKey.FIND_COORDINATOR, request, version_max=3)
        if answer.error_code == ErrorCode.NONE:
            return Address(answer.host, answer.port)
        wait_or_raise(answer.error_code, f"coordinator of {name}", deadline)


def wait_or_raise(code: int, doing: str, deadline: float) -> None:
    if not may_change(code) or time.monotonic() > deadline:
        raise refused(code, doing)
    time.sleep(POLL_S)
