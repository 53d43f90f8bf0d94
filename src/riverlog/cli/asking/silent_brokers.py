"""Which brokers are registered and do not answer: a process that is stopped keeps its port and, for as long
as its session with the metadata store lasts, what it leads.

They are found once, all at the same time and before anything else is asked, so that what the others tell is
there within the time-out. Where the connection is not plain it is not known who they are, and none is named.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Final

from riverlog.cli.asking.brokers import Brokers
from riverlog.cli.asking.connection import Connection
from riverlog.model.errors import RiverlogError
from riverlog.model.network import Address

_WAIT_MAX_S: Final = 3.0
_SHARE: Final = 4
"""Of the time-out, as there are other questions."""
_AT_ONCE_MAX: Final = 64


def silent_brokers(connection: Connection) -> frozenset[int]:
    wait_s = min(_WAIT_MAX_S, connection.timeout_s / _SHARE)
    if connection.properties.get("security.protocol", "plaintext").lower() != "plaintext":
        return frozenset()
    with Brokers(connection) as brokers:
        addresses = brokers.addresses()
    if not addresses:
        return frozenset()
    with ThreadPoolExecutor(min(len(addresses), _AT_ONCE_MAX)) as threads:
        answers = threads.map(lambda address: _answers(address, wait_s), addresses.values())
        return frozenset(
            node_id for node_id, answers_it in zip(addresses, answers, strict=True) if not answers_it
        )


def _answers(address: Address, wait_s: float) -> bool:
    from riverlog.client.broker_connection import BrokerConnection
    from riverlog.wire.apis import ApiKey

    try:
        with BrokerConnection(address, timeout_s=wait_s, client_id="riverlog-cli") as broker:
            broker.served(ApiKey.API_VERSIONS)
    except OSError:
        return False
    except (ValueError, RiverlogError):
        pass  # Whoever asks it something says what is wrong with it.
    return True
