"""CRC-32C, by the compiled module inside the `crc32c` package.

The package looks up its own version when it is imported, and what that needs (`importlib.metadata`, `email`,
`argparse` and more) takes a good part of the broker's start. Where the compiled module cannot be found by
itself, the package is imported as usual.
"""

from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Protocol

from riverlog.model.disk import ReadableBuffer


class Checksum(Protocol):
    def __call__(self, data: ReadableBuffer, value: int = 0, /) -> int:
        """`value` is the checksum of what comes before."""
        ...


def _compiled() -> Checksum:
    package = PathFinder.find_spec("crc32c")
    places = None if package is None else package.submodule_search_locations
    found = None if places is None else PathFinder.find_spec("crc32c._crc32c", list(places))
    if found is None or found.loader is None:
        from crc32c import crc32c

        return crc32c
    module = module_from_spec(found)
    found.loader.exec_module(module)
    function: Checksum = module.crc32c
    return function


crc32c = _compiled()
