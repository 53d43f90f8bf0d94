"""What a request says of topics, and the parts of it that are about one of them and about the others.

By the message tables, for every API: topics stand in arrays by name or by id, also below groups and
transactions, and as resources. `put_together` is the reverse for replies, which answer for each topic.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final
from uuid import UUID

from riverlog.wire.schema import Field, Message

TopicName = Callable[[UUID], str | None]

_TOPIC_RESOURCE: Final = 2
_NAMES: Final = ("name", "topic", "topic_name", "topic_id")
_IDENTITIES: Final = (
    *_NAMES,
    "group_id",
    "transactional_id",
    "producer_id",
    "resource_type",
    "resource_name",
)


def topics_of(message: Message, version: int, topic_name: TopicName) -> frozenset[str]:
    """The names of all topics that a request is about."""
    found = (topic_name(each) if isinstance(each, UUID) else each for each in _topics_of(message, version))
    return frozenset(name for name in found if name)


def split(request: Message, version: int, topic: str, topic_name: TopicName) -> tuple[Message, Message]:
    """The request as if it were about the topic alone, and as if it did not name it."""
    meant, rest = _copy(request), _copy(request)
    for field in _arrays(type(request), version):
        elements = getattr(request, field.name) or ()
        if not elements:
            continue
        of_meant: list[Any] = []
        of_rest: list[Any] = []
        for element in elements:
            if _is_about(field, element, topic, topic_name):
                of_meant.append(element)
            elif isinstance(element, Message) and topic in topics_of(element, version, topic_name):
                inner_meant, inner_rest = split(element, version, topic, topic_name)
                of_meant.append(inner_meant)
                if topics_of(inner_rest, version, topic_name):
                    of_rest.append(inner_rest)
            else:
                of_rest.append(element)
        setattr(meant, field.name, of_meant)
        setattr(rest, field.name, of_rest)
    return meant, rest


def answers_for(reply: Message, version: int, topic: str, topic_name: TopicName) -> bool:
    """Whether a reply has a place of its own for this topic."""
    for field in _arrays(type(reply), version):
        for element in getattr(reply, field.name) or ():
            if isinstance(element, Message) and (
                topic in _resolved(_names_of(element), topic_name)
                or getattr(element, "resource_name", None) == topic
                or answers_for(element, version, topic, topic_name)
            ):
                return True
    return False


def put_together(reply: Message, other: Message, version: int) -> None:
    """Add to `reply` what `other` answers besides: elements of the same identity become one."""
    for field in _arrays(type(reply), version):
        into: list[Any] = getattr(reply, field.name) or []
        for element in getattr(other, field.name) or ():
            identity = _identity(element)
            same = next((each for each in into if identity and _identity(each) == identity), None)
            if same is None:
                into.append(element)
            else:
                put_together(same, element, version)
        setattr(reply, field.name, into)


def _topics_of(message: Message, version: int) -> Iterator[str | UUID]:
    for field in _arrays(type(message), version):
        for element in getattr(message, field.name) or ():
            yield from _own_topics(field, element)
            if isinstance(element, Message):
                yield from _topics_of(element, version)


def _own_topics(field: Field, element: object) -> Iterator[str | UUID]:
    """What one element of an array says of topics, without what is below it."""
    if "topic" in field.name:
        if isinstance(element, str):
            yield element
        elif isinstance(element, Message):
            yield from _names_of(element)
    elif getattr(element, "resource_type", None) == _TOPIC_RESOURCE:
        yield str(getattr(element, "resource_name", ""))


def _is_about(field: Field, element: object, topic: str, topic_name: TopicName) -> bool:
    return topic in _resolved(_own_topics(field, element), topic_name)


def _resolved(names: Iterator[str | UUID], topic_name: TopicName) -> set[str | None]:
    return {topic_name(each) if isinstance(each, UUID) else each for each in names}


def _names_of(element: Message) -> Iterator[str | UUID]:
    for name in _NAMES:
        value = getattr(element, name, None)
        if isinstance(value, str | UUID) and value:
            yield value


def _identity(element: object) -> tuple[object, ...]:
    """By what an element is told from the others; empty if it has nothing."""
    return tuple(getattr(element, name) for name in _IDENTITIES if hasattr(element, name))


def _arrays(kind: type[Message], version: int) -> Iterator[Field]:
    return (field for field in kind.FIELDS if field.array and field.is_in(version))


def _copy(message: Message) -> Message:
    """Another message with the same values."""
    made = type(message)()
    for field in message.FIELDS:
        setattr(made, field.name, getattr(message, field.name))
    return made
