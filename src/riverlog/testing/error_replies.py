"""A reply with an error to whatever was asked, made from the request and the message tables.

Errors of a partition or topic are told for each one that the request names, as Kafka does; all others where
the reply has its outermost place for one. What is not known because of the error is -1, as brokers send it.
Not here: which request is to fail.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from riverlog.model.errors import ErrorCode
from riverlog.wire.schema import Field, Message

_ERROR_NAMES: Final = ("error_code", "partition_error_code")
_MESSAGE: Final = "a fault that a test has injected"

_OF_PARTITIONS: Final = frozenset(
    {
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
        ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE,
    }
)

_UNKNOWN: Final = frozenset(
    {
        "base_offset",
        "committed_offset",
        "controller_id",
        "end_offset",
        "generation_id",
        "high_watermark",
        "last_stable_offset",
        "low_watermark",
        "node_id",
        "offset",
        "port",
        "producer_epoch",
        "producer_id",
        "timestamp",
    }
)
"""Numbers that a reply without an error would tell."""

_IDENTITIES: Final = (
    ("partition_index", "partition_id", "partition", "index"),
    ("topic_name", "topic", "name"),
    ("group_id",),
    ("key",),
    ("transactional_id",),
)
"""By which names a thing goes in requests and in replies, where it has several."""

_SOURCES: Final[dict[str, tuple[str, ...]]] = {
    # A directory is not asked for: the error is told once.
    "DescribeLogDirsResult": (),
    "AlterReplicaLogDirTopicResult": ("dirs", "topics"),
}
"""From where in the request the elements of a reply come, if not from the array in the same place."""


def error_reply(request: Message, response: type[Message], version: int, error: ErrorCode) -> Message | None:
    """None where a reply of this version has no place for an error."""
    return _Filling(version, error).fill(request, response)


class _Filling:
    def __init__(self, version: int, error: ErrorCode) -> None:
        self._version = version
        self._error = error
        self._is_inner = error in _OF_PARTITIONS

    def fill(self, asked: Message, kind: type[Message]) -> Message | None:
        """What answers `asked`; None if there was no place for the error in it."""
        answer = kind()
        self._identify(asked, answer)
        own = next((each.name for each in self._fields(kind) if each.name in _ERROR_NAMES), None)
        if (own is None or self._is_inner) and self._fill_arrays(asked, answer):
            return answer
        if own is None:
            return None
        setattr(answer, own, self._error)
        if any(each.name == "error_message" for each in self._fields(kind)):
            setattr(answer, "error_message", _MESSAGE)  # noqa: B010 - not every message has it
        return answer

    def _fill_arrays(self, asked: Message, answer: Message) -> bool:
        told = False
        for field in self._fields(type(answer)):
            if field.array and field.struct is not None and self._has_place(field.struct):
                elements = [self._element(each, field.struct) for each in self._sources(asked, field.struct)]
                filled = [each for each in elements if each is not None]
                setattr(answer, field.name, filled)
                told = told or bool(filled)
        return told

    def _element(self, source: Any, kind: type[Message]) -> Message | None:
        if isinstance(source, Message):
            return self.fill(source, kind)
        element = self.fill(Message(), kind)
        for field in self._fields(kind):
            if element is not None and any(field.name in names for names in _IDENTITIES):
                setattr(element, field.name, source)
                break
        return element

    def _sources(self, asked: Message, kind: type[Message]) -> Iterable[Any]:
        path = _SOURCES.get(kind.__name__)
        if path is not None:
            return _at(asked, path) if path else [Message()]
        first = next((each.name for each in self._fields(type(asked)) if each.array), None)
        return () if first is None else getattr(asked, first) or ()

    def _identify(self, asked: Message, answer: Message) -> None:
        """Say what it is an answer to. What stands beside an error is told by no request."""
        has_error = any(field.name in _ERROR_NAMES for field in self._fields(type(answer)))
        known = {field.name: field for field in self._fields(type(asked)) if field.struct is None}
        for field in self._fields(type(answer)):
            if field.struct is not None or field.array or field.name in _ERROR_NAMES:
                continue
            source = next((name for name in _names_of(field.name) if name in known), None)
            if field.name in _UNKNOWN and has_error:
                setattr(answer, field.name, -1)
            elif source is not None and known[source].kind == field.kind and not known[source].array:
                setattr(answer, field.name, getattr(asked, source))

    def _has_place(self, kind: type[Message]) -> bool:
        return any(
            field.name in _ERROR_NAMES
            or (field.array and field.struct is not None and self._has_place(field.struct))
            for field in self._fields(kind)
        )

    def _fields(self, kind: type[Message]) -> Iterator[Field]:
        return (field for field in kind.FIELDS if field.is_in(self._version))


def _names_of(name: str) -> tuple[str, ...]:
    return next(((name, *names) for names in _IDENTITIES if name in names), (name,))


def _at(asked: Message, path: tuple[str, ...]) -> list[Any]:
    found: list[Any] = [asked]
    for name in path:
        found = [inner for each in found for inner in getattr(each, name)]
    return found
