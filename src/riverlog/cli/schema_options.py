"""The options by which `produce` and `consume` are told of schemas, and the registry that they name."""

from typing import TYPE_CHECKING, Annotated

import typer

from riverlog.cli.asking.connection import Connection
from riverlog.cli.failures import usage

if TYPE_CHECKING:
    from riverlog.cli.schemas.registry import Registry

RegistryOption = Annotated[
    str | None,
    typer.Option(
        "--schema-registry",
        envvar="RIVERLOG_SCHEMA_REGISTRY",
        metavar="URL",
        help="The schema registry, for --schema.",
    ),
]


def registry_at(connection: Connection, url: str | None) -> "Registry":
    from riverlog.cli.schemas.registry import Registry

    properties = connection.registry_properties
    url = url or properties.get("url")
    if url is None:
        raise usage(
            "--schema needs to know where the registry is",
            remedy="--schema-registry http://HOST:PORT, or RIVERLOG_SCHEMA_REGISTRY",
        )
    return Registry(
        url, {key: value for key, value in properties.items() if key != "url"}, connection.timeout_s
    )
