"""Every message in every version: our bytes are kio's, and each side reads what the other wrote."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riverlog.wire.codec import decode, encode
from riverlog.wire.schema import Message
from tests.wire.kio_bridge import kio_class, kio_decode, kio_encode, kio_message_names, kio_versions, to_kio
from tests.wire.message_values import listed_apis, message_classes, random_message, versions_of

CLASSES = message_classes()


def test_there_is_a_class_for_every_message_on_the_list_in_every_version_that_kio_has() -> None:
    names = {cls.__name__ for cls in CLASSES}
    assert names <= kio_message_names()
    assert {cls.__name__ for api in listed_apis().values() for cls in (api.request, api.response)} <= names
    for cls in CLASSES:
        assert {*versions_of(cls)} == kio_versions(cls), cls


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_bytes_equal_kios_in_both_directions(cls: type[Message], seed: int) -> None:
    random = Random(seed)
    for version in versions_of(cls):
        message = random_message(cls, version, random)
        entity = to_kio(message, kio_class(cls, version))
        data = kio_encode(entity)
        assert encode(message, version) == data, version
        assert decode(cls, version, data) == (message, len(data)), version
        assert decode(cls, version, memoryview(b"xyz" + data + b"!"), 3) == (message, 3 + len(data)), version
        assert kio_decode(type(entity), encode(message, version)) == entity, version


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_a_message_of_defaults_round_trips_in_every_version(cls: type[Message]) -> None:
    for version in versions_of(cls):
        data = encode(cls(), version)
        assert data == kio_encode(to_kio(cls(), kio_class(cls, version))), version
        assert decode(cls, version, data) == (cls(), len(data)), version
