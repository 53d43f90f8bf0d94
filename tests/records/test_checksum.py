"""The checksum of batches, loaded without the package that it comes in."""

import subprocess
import sys

import crc32c as package

from riverlog.records.checksum import crc32c


def test_it_is_crc_32c() -> None:
    assert crc32c(b"123456789") == 0xE3069283 == package.crc32c(b"123456789")
    assert crc32c(memoryview(bytearray(b"123456789"))) == 0xE3069283


def test_loading_it_does_not_load_what_the_package_needs_for_its_version() -> None:
    loaded = "import sys, riverlog.records.batch; print('importlib.metadata' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True).stdout == "False\n"
