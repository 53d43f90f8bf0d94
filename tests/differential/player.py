"""Plays scripts on a broker and says what came back.

An outcome is ``{"reply": fields}``, ``{"closed": true}``, ``{"nothing": true}`` (a later request on the
connection was answered and this one was not), ``{"silent": true}`` (no answer before the deadline) or
``{"undecodable": hex}``. A connection that was closed is opened again for the next step.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from tests.differential import batches, codec
from tests.differential.connection import Connection, ConnectionClosedError, NoAnswerError
from tests.differential.normalise import Normaliser
from tests.differential.settings import CLUSTER_DEFAULTS
from tests.differential.steps import Call, Collect, Control, Frame, Later, Script, Step, Together
from tests.waiting import looks

Json = Any

PATIENCE_S = 10.0
SETTLE_S = 15.0
POLL_S = 0.03


class UnboundVariableError(Exception):
    """A request needs a value that no earlier reply has given."""


class Brokers(Protocol):
    """Several brokers under test. A connection is named after the broker to which it goes, "2" or "2 b"."""

    @property
    def addresses(self) -> Mapping[int, tuple[str, int]]: ...

    def stop(self, broker: int) -> None: ...

    def start(self, broker: int) -> None: ...


class Player:
    """One broker under test, or several; each script gets connections and variables of its own."""

    def __init__(
        self,
        host: str,
        port: int,
        normaliser: Normaliser,
        patience_s: float = PATIENCE_S,
        brokers: Brokers | None = None,
    ) -> None:
        self._host, self._port = host, port
        self._brokers = brokers
        self._normaliser = normaliser
        self._patience_s = patience_s
        self._connections: dict[str, Connection] = {}
        self._waiting: dict[str, tuple[Call, int]] = {}
        self._next_correlation = 1
        self._sent_text = ""

    def warm_up(self) -> None:
        """Bring the broker to the state in which Kafka is after its first moments.

        Kafka asks its controller for producer ids when the first is wanted, and says so until they come.
        """
        fields = {"transactional_id": None, "transaction_timeout_ms": 1000}
        allotted = Call("InitProducerId", 1, fields, until={"error_code": "NONE"})
        configs = [
            {"name": key, "config_operation": 0, "value": value} for key, value in CLUSTER_DEFAULTS.items()
        ]
        defaults = {"resources": [{"resource_type": 4, "resource_name": "", "configs": configs}]}
        self.play(Script("warm-up", "", [allotted, Call("IncrementalAlterConfigs", 1, defaults)]))

    def play(self, script: Script) -> list[Json]:
        self._normaliser.begin_script(script.name)
        self._sent_text = ""
        try:
            return [self._exchange(step) for step in script.steps]
        finally:
            self._waiting.clear()
            for connection in self._connections.values():
                connection.close()
            self._connections.clear()

    def _exchange(self, step: Step) -> Json:
        match step:
            case Together(calls):
                outcomes = self._pipelined(calls)
                pairs = zip(calls, outcomes, strict=True)
                return {"together": [{"send": call.to_json()} | outcome for call, outcome in pairs]}
            case Later(label, call):
                self._send_later(label, call)
                return {"send": step.to_json()}
            case Collect(label):
                return {"send": step.to_json()} | self._collect(label)
            case Control(verb, broker):
                self._control(verb, broker)
                return {"send": step.to_json()}
            case Call(until=None) | Frame():
                return {"send": step.to_json()} | self._pipelined((step,))[0]
            case Call():
                return {"send": step.to_json()} | self._settled(step)

    def _settled(self, call: Call) -> Json:
        assert call.until is not None
        outcome: Json = {}
        for _ in looks(SETTLE_S, POLL_S):
            outcome = self._pipelined((call,))[0]
            if all(at(outcome.get("reply"), path) == value for path, value in call.until.items()):
                break
        return outcome

    def _pipelined(self, calls: tuple[Call | Frame, ...]) -> list[Json]:
        try:
            frames = [self._frame(call) for call in calls]
        except UnboundVariableError as missing:
            return [{"unbound": str(missing)} for _ in calls]
        name = calls[0].on
        connection = self._connection(name)
        with contextlib.suppress(ConnectionClosedError):  # what was answered before it is still there to read
            connection.send(b"".join(data for data, _ in frames))
        awaited = [correlation for _, correlation in frames]
        replies, end = self._replies(connection, awaited)
        if end is not None:
            self._drop(name)
        last = max((awaited.index(got) for got in replies), default=-1)
        outcomes = []
        for index, (call, correlation) in enumerate(zip(calls, awaited, strict=True)):
            if correlation in replies:
                outcomes.append(self._decoded(call.reads_as, replies[correlation]))
            else:
                outcomes.append({"nothing": True} if index < last else {end or "nothing": True})
        return outcomes

    def _replies(self, connection: Connection, awaited: list[int]) -> tuple[dict[int, bytes], str | None]:
        replies: dict[int, bytes] = {}
        while awaited[-1] not in replies:
            try:
                payload = connection.receive()
            except ConnectionClosedError:
                return replies, "closed"
            except NoAnswerError:
                return replies, "silent"
            correlation = codec.correlation_of(payload)
            answered = max((awaited.index(got) for got in replies), default=-1)
            if correlation not in awaited[answered + 1 :]:
                return replies, f"unexpected correlation id after {len(replies)} replies"
            replies[correlation] = payload
        return replies, None

    def _decoded(self, reads_as: tuple[str, int] | None, payload: bytes) -> Json:
        if reads_as is None:
            return {"undecodable": payload.hex()}
        api, version = reads_as
        try:
            fields = codec.decode_reply(api, version, payload)
        except Exception as error:  # noqa: BLE001 - kio's errors share no base with those of its native part
            return {"undecodable": payload.hex(), "as": f"{api} v{version}: {error!r}"}
        return {"reply": self._normaliser.normalise(api, version, fields, self._sent_text)}

    def _send_later(self, label: str, call: Call) -> None:
        data, correlation = self._frame(call)
        self._connection(call.on).send(data)
        self._waiting[label] = (call, correlation)

    def _collect(self, label: str) -> Json:
        call, correlation = self._waiting.pop(label)
        replies, end = self._replies(self._connection(call.on), [correlation])
        if correlation in replies:
            return self._decoded(call.reads_as, replies[correlation])
        self._drop(call.on)
        return {end or "nothing": True}

    def _connection(self, name: str) -> Connection:
        if name not in self._connections:
            address = (self._host, self._port)
            if self._brokers is not None and name[0].isdigit():
                address = self._brokers.addresses[int(name[0])]
            self._connections[name] = Connection(*address, self._patience_s)
        return self._connections[name]

    def _control(self, verb: str, broker: int) -> None:
        assert self._brokers is not None
        for name in [name for name in self._connections if name[0] == str(broker)]:
            self._drop(name)
        (self._brokers.stop if verb == "stop" else self._brokers.start)(broker)

    def _drop(self, name: str) -> None:
        self._connections.pop(name).close()

    def _frame(self, call: Call | Frame) -> tuple[bytes, int]:
        if isinstance(call, Frame):
            size = len(call.payload) if call.size is None else call.size
            prefix = struct.pack(">i", size) if call.with_size else b""
            correlation = struct.unpack_from(">i", call.payload.ljust(8, b"\0"), 4)[0]
            return prefix + call.payload, correlation
        correlation = self._next_correlation
        self._next_correlation += 1
        fields = self._resolve(call.fields)
        self._sent_text += repr(fields)
        payload = codec.encode_request(call.api, call.version, fields, correlation, call.client_id)
        for edit in call.edits:
            payload = _edited(payload, edit)
        return struct.pack(">i", len(payload)) + payload, correlation

    def _resolve(self, value: Json) -> Json:
        match value:
            case {"$var": str(name)}:
                if name not in self._normaliser.variables:
                    raise UnboundVariableError(name)
                return self._normaliser.variables[name]
            case {"$batch": description}:
                return {"$hex": batches.build(self._resolve(description)).hex()}
            case {"$batches": parts}:
                return {"$hex": "".join(self._resolve(part)["$hex"] for part in parts)}
            case Mapping():
                return {key: self._resolve(inner) for key, inner in value.items()}
            case list() | tuple():
                return [self._resolve(inner) for inner in value]
            case _:
                return value


def _edited(payload: bytes, edit: Mapping[str, Json]) -> bytes:
    match edit:
        case {"truncate": int(count)}:
            return payload[:-count]
        case {"append": str(digits)}:
            return payload + bytes.fromhex(digits)
        case {"replace": [str(old), str(new)]}:
            assert payload.count(bytes.fromhex(old)) == 1, (
                f"{old} stands {payload.count(bytes.fromhex(old))} times"
            )
            return payload.replace(bytes.fromhex(old), bytes.fromhex(new))
        case _:
            raise ValueError(edit)


def at(value: Json, path: str) -> Json:
    """What stands at a path of names and list positions, None if nothing does."""
    for part in path.split("."):
        try:
            value = value[int(part)] if part.isdigit() else value[part]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def in_playing_order(scripts: list[Script]) -> Iterator[Script]:
    """Those that want an empty broker first, otherwise as they are written."""
    yield from (script for script in scripts if script.empty_broker)
    yield from (script for script in scripts if not script.empty_broker)
