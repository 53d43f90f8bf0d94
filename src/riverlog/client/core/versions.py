"""Which versions of which API a broker serves, and the one to speak: the newest that both sides know."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from riverlog.model.errors import RiverlogError
from riverlog.wire.apis import APIS, ApiKey
from riverlog.wire.messages.api_versions import ApiVersionsResponse

NEGOTIATION_VERSION: Final = 0
"""Of ApiVersions: the one that every broker answers."""


class UnsupportedApiError(RiverlogError):
    """The broker does not serve an API, or in no version that we know."""


class VersionRange(NamedTuple):
    first: int
    last: int


_NOT_SERVED: Final = VersionRange(0, -1)
_NOT_ADVERTISED: Final = {ApiKey.ENVELOPE: VersionRange(0, 0)}
"""What brokers ask of each other, and tell no client that they serve it."""


class ServedVersions:
    """What one broker has said about itself."""

    def __init__(self, ranges: Mapping[int, VersionRange]) -> None:
        self._ranges = ranges

    @classmethod
    def of_reply(cls, reply: ApiVersionsResponse) -> "ServedVersions":
        return cls(
            {each.api_key: VersionRange(each.min_version, each.max_version) for each in reply.api_keys}
        )

    def range_of(self, key: ApiKey) -> VersionRange:
        """The last is before the first when the API is not served."""
        return self._ranges.get(key) or _NOT_ADVERTISED.get(key, _NOT_SERVED)

    def newest(self, key: ApiKey, version_max: int | None = None) -> int:
        """The newest that both sides know, held down to `version_max`."""
        api = APIS[key]
        first, last = self.range_of(key)
        version = min(api.max_version, last, api.max_version if version_max is None else version_max)
        if version < max(first, api.min_version):
            raise UnsupportedApiError(f"The broker does not serve {api.name} in a version known here.")
        return version
