"""How a command reaches a broker: the connection options, and the clients made from them.

`connected` gives a command the four connection options and hands it a `Connection`. A broker that is not
there is found with a plain TCP connection before librdkafka is asked, because librdkafka retries in the
background until its time-out and then cannot say why.
"""

import functools
import inspect
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from riverlog.cli.asking.strangers import what_answers
from riverlog.cli.failures import CommandError, ExitCode, from_kafka, key_values, usage

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Producer

    from riverlog.cli.asking.kafka_admin import AdminClient, ClusterMetadata

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
DEFAULT_TIMEOUT_S = 10.0
PROBE_TIMEOUT_S = 3.0
GROUP_OF_PLAIN_READERS = "riverlog-cli"
_OF_REGISTRY = "schema.registry."


@dataclass(slots=True)
class Connection:
    """Where the brokers are and how to talk to them. Clients are made on demand, after one quick probe."""

    bootstrap: str
    timeout_s: float
    properties: Mapping[str, str]
    last_error: "KafkaError | None" = None
    _loss: "KafkaError | None" = None
    _admin: "AdminClient | None" = field(default=None, repr=False)
    _probed: bool = False

    def admin(self) -> "AdminClient":
        if self._admin is None:
            from riverlog.cli.asking.kafka_admin import AdminClient

            self._probe()
            self._admin = AdminClient(self._settings())
        return self._admin

    def producer(self, settings: Mapping[str, Any]) -> "Producer":
        from confluent_kafka import Producer

        self._probe()
        return Producer(self._settings(settings))

    def consumer(self, settings: Mapping[str, Any]) -> "Consumer":
        from confluent_kafka import Consumer

        self._probe()
        return Consumer(self._settings({"group.id": GROUP_OF_PLAIN_READERS, **settings}))

    @property
    def registry_properties(self) -> dict[str, str]:
        """What is meant for the client of a schema registry."""
        return {
            key.removeprefix(_OF_REGISTRY): value
            for key, value in self.properties.items()
            if key.startswith(_OF_REGISTRY)
        }

    def answers(self) -> bool:
        """Whether a broker is there at this moment."""
        from confluent_kafka import KafkaException

        try:
            self.admin().list_topics(timeout=1.0)
        except (CommandError, KafkaException):
            return False
        return True

    def metadata(self) -> "ClusterMetadata":
        """What the cluster says about itself; the first thing that shows wrong credentials or addresses."""
        from confluent_kafka import KafkaException

        admin = self.admin()
        deadline = time.monotonic() + self.timeout_s
        while True:
            left_s = deadline - time.monotonic()
            try:
                return admin.list_topics(timeout=max(0.1, min(1.0, left_s)))
            except KafkaException as error:
                admin.poll(0)
                self.raise_if_refused()
                if left_s <= 1.0:
                    raise self.failure(error.args[0]) from None

    def raise_if_refused(self) -> None:
        """Credentials do not get better by waiting."""
        if self.last_error is not None and self.last_error.name() in ("_AUTHENTICATION", "_SSL"):
            raise from_kafka(self.last_error)

    def take_loss(self) -> "KafkaError | None":
        """The complaint that no broker can be reached, if there has been one since the last call."""
        error, self._loss = self._loss, None
        return error

    def failure(self, error: "KafkaError", doing: str = "") -> CommandError:
        """The failure for `error`, with the client's background complaint when that is the real reason."""
        failure = from_kafka(error, doing)
        if failure.code is ExitCode.CONNECTION and self.last_error is not None:
            failure.message += f" ({self.last_error.str()})"
        return failure

    def _settings(self, extra: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.bootstrap,
            "client.id": "riverlog-cli",
            # librdkafka would log to stderr by itself; what matters arrives in error_cb.
            "log_level": 0,
            "error_cb": self._remember,
            "socket.timeout.ms": max(1000, int(self.timeout_s * 1000)),
            "socket.connection.setup.timeout.ms": max(1000, int(self.timeout_s * 1000)),
            **(extra or {}),
            **{key: value for key, value in self.properties.items() if not key.startswith(_OF_REGISTRY)},
        }

    def _remember(self, error: "KafkaError") -> None:
        self.last_error = error
        if error.name() == "_ALL_BROKERS_DOWN":
            self._loss = error

    @property
    def _is_plain(self) -> bool:
        protocol = self.properties.get("security.protocol", "plaintext").lower()
        return protocol in ("plaintext", "sasl_plaintext")

    def _probe(self) -> None:
        if self._probed:
            return
        self._probed = True
        reasons = []
        for host, port in bootstrap_addresses(self.properties.get("bootstrap.servers", self.bootstrap)):
            try:
                with socket.create_connection((host, port), min(self.timeout_s, PROBE_TIMEOUT_S)) as probe:
                    stranger = what_answers(probe) if self._is_plain else None
                if stranger is None:
                    return
                reasons.append(f"{host}:{port}: {stranger}")
            except OSError as error:
                reasons.append(f"{host}:{port}: {_reason(error)}")
        raise CommandError(
            f"cannot connect to {'; '.join(reasons)}",
            remedy="start one with `riverlog serve`, or name another with -b HOST:PORT or RIVERLOG_BOOTSTRAP",
            code=ExitCode.CONNECTION,
        )


def bootstrap_addresses(bootstrap: str) -> list[tuple[str, int]]:
    """`host:port,host:port` as addresses; the port defaults to 9092, an IPv6 host stands in brackets."""
    addresses = []
    for server in filter(None, (part.strip() for part in bootstrap.split(","))):
        host, port = _split_address(server.rpartition("://")[2])
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise usage(f"{server!r} is not a broker address", remedy="-b HOST:PORT[,HOST:PORT…]")
        addresses.append((host, int(port)))
    if not addresses:
        raise usage("no broker address is given", remedy="-b HOST:PORT[,HOST:PORT…]")
    return addresses


def _split_address(server: str) -> tuple[str, str]:
    if server.startswith("["):
        host, bracket, rest = server[1:].partition("]")
        return (host, rest.removeprefix(":") or "9092") if bracket else ("", "")
    host, colon, port = server.rpartition(":")
    return (host, port) if colon else (server, "9092")


def _reason(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, socket.gaierror):
        return "no such host"
    return (error.strerror or str(error)).lower()


def client_properties(path: Path | None, pairs: list[str]) -> dict[str, str]:
    """librdkafka properties: those of the file, and over them those of the command line."""
    properties = {}
    if path is not None:
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            text = line.strip()
            if text and not text.startswith(("#", "!")):
                key, equals, value = text.partition("=")
                if not equals:
                    raise usage(f"{path}:{number}: {text!r} is not of the form key=value")
                properties[key.strip()] = value.strip()
    return {**properties, **key_values(pairs, "-X")}


_BOOTSTRAP = typer.Option(
    "-b",
    "--bootstrap-server",
    envvar="RIVERLOG_BOOTSTRAP",
    metavar="HOST:PORT[,…]",
    help="The broker, or some brokers of the cluster.",
    rich_help_panel="Connection",
)
_TIMEOUT = typer.Option(
    "--timeout",
    metavar="SECONDS",
    min=0.1,
    help="How long to wait for an answer.",
    rich_help_panel="Connection",
)
_CLIENT_CONFIG = typer.Option(
    "--client-config",
    metavar="FILE",
    exists=True,
    dir_okay=False,
    help="Client properties (librdkafka's), for TLS and SASL.",
    rich_help_panel="Connection",
)
_CLIENT_SET = typer.Option(
    "-X", "--client-set", metavar="KEY=VALUE", help="One client property.", rich_help_panel="Connection"
)
_PARAMETERS = {
    "bootstrap_server": (Annotated[str, _BOOTSTRAP], DEFAULT_BOOTSTRAP),
    "timeout": (Annotated[float, _TIMEOUT], DEFAULT_TIMEOUT_S),
    "client_config": (Annotated[Path | None, _CLIENT_CONFIG], None),
    "client_set": (Annotated[list[str] | None, _CLIENT_SET], None),
}


def connected(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the connection options; it gets the Connection as its first argument."""

    @functools.wraps(command)
    def run(
        *,
        bootstrap_server: str,
        timeout: float,
        client_config: Path | None,
        client_set: list[str] | None,
        **arguments: Any,
    ) -> None:
        properties = client_properties(client_config, client_set or [])
        command(Connection(bootstrap_server, timeout, properties), **arguments)

    own = list(inspect.signature(command).parameters.values())[1:]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in _PARAMETERS.items()
    ]
    signature = inspect.Signature([*own, *shared], return_annotation=None)
    # The option parser reads a command's signature; this is the one that people see.
    vars(run)["__signature__"] = signature
    run.__annotations__ = {
        parameter.name: parameter.annotation for parameter in signature.parameters.values()
    }
    return run
