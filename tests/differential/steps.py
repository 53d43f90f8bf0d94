"""What a sequence is made of.

A sequence is a list of steps on one or more connections. ``Call`` is a request by its fields; ``Frame`` is
bytes; ``Together`` sends several in one write before it reads any reply; ``Later``/``Collect`` leave a
request waiting while others are answered; ``Control`` stops and starts one of several brokers. Each is a
value that turns into JSON and nothing else, so that a recording can hold the request beside the reply.

Values that are born in the run are named, not written: ``var("topic_id:orders")`` is whatever id the
broker under test gave to the topic ``orders``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.differential import codec

Json = Any


@dataclass(frozen=True, slots=True)
class Call:
    """A request given by its fields; ``edits`` damage the encoded payload in order."""

    api: str
    version: int
    fields: Mapping[str, Json] = field(default_factory=dict)
    edits: tuple[Mapping[str, Json], ...] = ()
    on: str = "main"
    client_id: str | None = "differential"
    until: Mapping[str, Json] | None = None
    """Ask again until the reply has these values: for what a broker does after it has answered."""

    def to_json(self) -> Json:
        shown: dict[str, Json] = {"api": self.api, "version": self.version}
        shown["fields"] = codec.fields_sent(self.api, self.version, self.fields)
        if self.edits:
            shown["edits"] = list(self.edits)
        if self.on != "main":
            shown["on"] = self.on
        if self.client_id != "differential":
            shown["client_id"] = self.client_id
        if self.until is not None:
            shown["until"] = dict(self.until)
        return shown

    @property
    def reads_as(self) -> tuple[str, int]:
        return self.api, self.version


@dataclass(frozen=True, slots=True)
class Frame:
    """Bytes, sent as they are after a size (theirs, or a false one, or none at all)."""

    payload: bytes
    about: str
    size: int | None = None
    with_size: bool = True
    on: str = "main"
    reads_as: tuple[str, int] | None = None

    def to_json(self) -> Json:
        shown: dict[str, Json] = {"frame": self.payload.hex(), "about": self.about}
        if self.size is not None:
            shown["size"] = self.size
        if not self.with_size:
            shown["with_size"] = False
        if self.on != "main":
            shown["on"] = self.on
        if self.reads_as is not None:
            shown["reads_as"] = list(self.reads_as)
        return shown


@dataclass(frozen=True, slots=True)
class Together:
    """Requests written at once; a request that gets no reply must not be the last."""

    calls: tuple[Call | Frame, ...]

    def to_json(self) -> Json:
        return {"together": [call.to_json() for call in self.calls]}


@dataclass(frozen=True, slots=True)
class Later:
    """A request whose reply is read by the ``Collect`` of the same label."""

    label: str
    call: Call

    def to_json(self) -> Json:
        return {"later": self.label, "call": self.call.to_json()}


@dataclass(frozen=True, slots=True)
class Collect:
    label: str

    def to_json(self) -> Json:
        return {"collect": self.label}


@dataclass(frozen=True, slots=True)
class Control:
    """A broker of several is stopped, which hands over what it leads, or started."""

    verb: Literal["stop", "start"]
    broker: int

    def to_json(self) -> Json:
        return {self.verb: self.broker}


Step = Call | Frame | Together | Later | Collect | Control


@dataclass(frozen=True, slots=True)
class Script:
    """One named sequence; the file of recordings it belongs to is that of its API."""

    api: str
    name: str
    steps: Sequence[Step]
    empty_broker: bool = False
    """Wants a broker without topics, so it goes first and leaves none behind."""

    @property
    def id(self) -> str:
        return f"{self.api}/{self.name}"


def var(name: str) -> Json:
    return {"$var": name}


def batch(*values: str | None, **description: Json) -> Json:
    """One record batch with these values, or with ``records=[...]`` for all that a record can say."""
    if values:
        description["records"] = [{"value": value} for value in values]
    return {"$batch": description}


def batches(*parts: Json) -> Json:
    return {"$batches": list(parts)}


def hexed(data: bytes) -> Json:
    return {"$hex": data.hex()}


def truncate(count: int) -> Mapping[str, Json]:
    """Cut bytes off the end; the size in front is that of what is left."""
    return {"truncate": count}


def append(data: bytes) -> Mapping[str, Json]:
    return {"append": data.hex()}


def replace(old: bytes, new: bytes) -> Mapping[str, Json]:
    """Put other bytes at the one place where these stand."""
    return {"replace": [old.hex(), new.hex()]}
