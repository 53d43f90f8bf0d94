"""A schema registry, asked over HTTP: schemas by id, and the latest of a subject.

Two failures are kept apart. A registry that answers and does not have the schema is a matter of the record
(`SchemaUnknownError`, a dead letter); one that does not answer is a matter of the moment
(`RegistryUnreachableError`, which fails the task, so that an outage does not turn a stream into dead
letters). Schemas never change under an id, so they are kept; that one is unknown is kept for a short while
only. Each wait is bounded.
"""

import base64
import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from riverlog.model.errors import RiverlogError

REQUEST_TIMEOUT_S = 10.0
ATTEMPTS = 3
UNKNOWN_KEPT_S = 30.0
_REPLY_BYTES_MAX = 16 * 1024 * 1024
_ACCEPT = "application/vnd.schemaregistry.v1+json, application/json"


class SchemaUnknownError(RiverlogError):
    """The registry has no such schema, or none that is Avro."""


class RegistryUnreachableError(RiverlogError):
    """The registry could not be asked."""


@dataclass(frozen=True, slots=True)
class _Refusal:
    reason: str
    at_s: float


class Registry:
    """One registry, with what it has said so far. A user and password may stand in the address."""

    def __init__(
        self, address: str, *, timeout_s: float = REQUEST_TIMEOUT_S, attempts: int = ATTEMPTS
    ) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"The registry address {address!r} is not an http or https address.")
        host = parts.netloc.rpartition("@")[2]
        self._base = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
        self._headers = {"Accept": _ACCEPT}
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"
        self._timeout_s = timeout_s
        self._attempts = attempts
        self._known: dict[int, str] = {}
        self._refused: dict[int, _Refusal] = {}

    def schema(self, schema_id: int) -> str:
        """The Avro schema with this id, as JSON text."""
        if (text := self._known.get(schema_id)) is not None:
            return text
        refusal = self._refused.get(schema_id)
        if refusal is not None and time.monotonic() - refusal.at_s < UNKNOWN_KEPT_S:
            raise SchemaUnknownError(refusal.reason)
        try:
            text = self._avro(f"/schemas/ids/{schema_id}", f"schema id {schema_id}")
        except SchemaUnknownError as error:
            self._refused[schema_id] = _Refusal(str(error), time.monotonic())
            raise
        self._known[schema_id] = text
        return text

    def latest(self, subject: str) -> str:
        return self._avro(f"/subjects/{quote(subject, safe='')}/versions/latest", f"subject {subject}")

    def _avro(self, path: str, what: str) -> str:
        reply = self._get(path, what)
        if (kind := reply.get("schemaType", "AVRO")) != "AVRO":
            raise SchemaUnknownError(f"the {what} in the registry is {kind}, not Avro")
        if reply.get("references"):
            raise SchemaUnknownError(
                f"the {what} in the registry refers to other schemas, which is not supported"
            )
        text = reply.get("schema")
        if not isinstance(text, str):
            raise RegistryUnreachableError(f"The registry at {self._base} gave no schema for the {what}.")
        return text

    def _get(self, path: str, what: str) -> dict[str, Any]:
        reason = ""
        for attempt in range(self._attempts):
            if attempt:
                time.sleep(0.2 * 2**attempt)
            try:
                request = urllib.request.Request(self._base + path, headers=self._headers)
                with urllib.request.urlopen(request, timeout=self._timeout_s) as response:
                    reply = json.loads(response.read(_REPLY_BYTES_MAX))
            except urllib.error.HTTPError as error:
                with error:
                    if error.code == 404:
                        raise SchemaUnknownError(f"the registry does not know the {what}") from None
                    reason = f"HTTP {error.code} {error.reason}"
                if error.code in (401, 403):
                    break
            except (OSError, ValueError) as error:
                reason = str(error) or type(error).__name__
            else:
                if isinstance(reply, dict):
                    return reply
                reason = "the reply is not a JSON object"
        raise RegistryUnreachableError(
            f"The schema registry at {self._base} did not give the {what}: {reason}. "
            "Check the address, and that the workers can reach it."
        )


@cache
def registry_at(address: str) -> Registry:
    """One for each address in a worker process, so that its schemas are asked for once."""
    return Registry(address)
