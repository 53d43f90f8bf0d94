"""A schema registry, asked through confluent-kafka's client for it, and its failures in words for people.

What it needs is in the extra `schema`; without that, the first use says so.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from riverlog.cli.failures import CommandError, ExitCode, usage
from riverlog.cli.schemas.choice import Format

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

NEEDS_EXTRA = "pip install 'riverlog[schema]'"
_SERIALIZED = "serialized"
"""The form in which a registry gives a Protobuf schema to those who cannot compile its text."""


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    schema_id: int
    format: str
    """As the registry names it, in small letters."""
    text: str
    references: Mapping[str, "RegisteredSchema"]
    """Schemas that it uses, by the names that it has for them."""


class Registry:
    def __init__(self, url: str, properties: Mapping[str, str], timeout_s: float) -> None:
        self.url = url
        self._where = _without_credentials(url)
        settings = {"timeout": timeout_s, "max.retries": 1, "retries.wait.ms": 100}
        self._settings: dict[str, Any] = {"url": url, **settings, **properties}
        self._client = self._new_client()

    def _new_client(self) -> "SchemaRegistryClient":
        try:
            from confluent_kafka.schema_registry import SchemaRegistryClient
        except ImportError as error:
            raise needs_extra(error) from None
        try:
            return SchemaRegistryClient(self._settings)
        except (TypeError, ValueError) as error:
            raise usage(
                f"the schema registry {self._where}: {error}",
                remedy="--schema-registry http://HOST:PORT; other settings with -X schema.registry.KEY=VALUE",
            ) from None

    def schema(self, schema_id: int, wanted: Format) -> RegisteredSchema:
        with self._asking(f"schema {schema_id}"):
            found = self._client.get_schema(schema_id, fmt=_form(wanted))
            return self._told(schema_id, found, wanted)

    def newest(self, subject: str, wanted: Format) -> RegisteredSchema:
        with self._asking(
            f"subject {subject}",
            remedy="register its schema with --schema SIDE=FORMAT:FILE, or name one by number",
        ):
            found = self._client.get_latest_version(subject, _form(wanted))
            return self._told(found.schema_id or 0, found.schema, wanted)

    def register(self, subject: str, wanted: Format, text: str) -> RegisteredSchema:
        """The schema, under the number that it has had before if it was there."""
        from confluent_kafka.schema_registry import Schema

        with self._asking(f"the schema for {subject}"):
            schema_id = self._client.register_schema(subject, Schema(text, wanted.upper()))
        # The client remembers the text as we sent it, which need not be the form that we can read.
        self._client = self._new_client()
        return self.schema(schema_id, wanted)

    def _told(self, schema_id: int, schema: "Schema", wanted: Format) -> RegisteredSchema:
        references = {}
        for each in schema.references or ():
            used = self._client.get_version(each.subject or "", each.version or 0, fmt=_form(wanted))
            references[each.name or ""] = self._told(used.schema_id or 0, used.schema, wanted)
        kind = (schema.schema_type or "AVRO").lower()
        return RegisteredSchema(schema_id, kind, schema.schema_str or "", references)

    @contextmanager
    def _asking(self, what: str, remedy: str = "") -> Iterator[None]:
        from confluent_kafka.schema_registry.error import SchemaRegistryError

        try:
            yield
        except SchemaRegistryError as error:
            raise self._refusal(error, what, remedy) from None
        except ValueError as error:
            raise CommandError(
                f"what answers at {self._where} is no schema registry: {error}",
                remedy="check --schema-registry",
            ) from None
        except Exception as error:
            if not _is_of_transport(error):
                raise
            reason = str(error) or type(error).__name__
            raise CommandError(
                f"the schema registry at {self._where} cannot be reached: {reason}",
                remedy="check --schema-registry and that it is up, or allow more time with --timeout",
                code=ExitCode.CONNECTION,
            ) from None

    def _refusal(self, error: Any, what: str, remedy: str) -> CommandError:
        status, number = error.http_status_code, error.error_code
        if status in (401, 403):
            return CommandError(
                f"the schema registry at {self._where} refuses us ({status})",
                remedy="-X schema.registry.basic.auth.user.info=USER:PASSWORD",
                code=ExitCode.AUTHENTICATION,
            )
        if status == 404 and number in (40401, 40402, 40403):
            return CommandError(
                f"the schema registry at {self._where} has no {what}", remedy=remedy, code=ExitCode.NOT_FOUND
            )
        if number in (None, -1):
            return CommandError(
                f"what answers at {self._where} is no schema registry (HTTP status {status})",
                remedy="check --schema-registry",
            )
        return CommandError(f"the schema registry at {self._where} refuses {what}: {error.error_message}")


def needs_extra(error: ImportError) -> CommandError:
    return usage(f"schemas need the package {error.name}, which is not installed", remedy=NEEDS_EXTRA)


def _form(wanted: Format) -> str | None:
    return _SERIALIZED if wanted is Format.PROTOBUF else None


def _is_of_transport(error: Exception) -> bool:
    """Of the HTTP client, whose name depends on what confluent-kafka has found."""
    return any(kind.__name__ == "TransportError" for kind in type(error).__mro__)


def _without_credentials(url: str) -> str:
    user, sign, rest = urlsplit(url).netloc.rpartition("@")
    return url.replace(f"{user}{sign}", "", 1) if sign and rest else url
