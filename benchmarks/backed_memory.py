"""Free memory that is really there when a measurement begins.

A virtual machine may hand free memory back to its host, and whoever touches it again pays: up to 4 s of
processor time for each GB where this was found, beside 0.3 s for writing a GB to the page cache. A file of
as many bytes that is written and deleted leaves free pages that the host has not taken back yet.
"""

import os
import tempfile
from pathlib import Path

_STEP = bytes(1024**2)


def have_backed(directory: Path, size: int) -> None:
    """Just before a measurement that fills about `size` bytes of the page cache."""
    with tempfile.TemporaryFile(dir=directory) as scratch:
        for _ in range(-(-size // len(_STEP))):
            os.write(scratch.fileno(), _STEP)
