"""A SPARK_HOME whose Python processes start in a third of the time: the installed PySpark, by links.

Spark puts `python/lib/pyspark.zip` of its home before everything else on the path of its Python processes,
and Python keeps no compiled form of what it imports from a zip: each of the many processes of a query would
compile PySpark anew. Without the zip they import the package that is installed.
"""

import hashlib
import os
from pathlib import Path
from typing import Final

_LINKED: Final = ("bin", "jars", "sbin", "conf")


def light_home(directory: Path) -> Path:
    """Make one in the directory; again does no harm."""
    installed = _installed()
    directory.mkdir(parents=True, exist_ok=True)
    for name in _LINKED:
        if (installed / name).exists() and not (directory / name).is_symlink():
            (directory / name).symlink_to(installed / name)
    return directory


def use_light_home() -> None:
    """For the Spark that this process starts. Whoever has a SPARK_HOME of their own keeps it."""
    if "SPARK_HOME" in os.environ:
        return
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    mark = hashlib.sha256(str(_installed()).encode()).hexdigest()[:12]
    try:
        os.environ["SPARK_HOME"] = str(light_home(cache / "riverlog" / f"spark-{mark}"))
    except OSError:
        return  # Nowhere to write: the home that Spark finds by itself is only slower.


def _installed() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent
