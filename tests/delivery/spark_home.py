"""A SPARK_HOME for tests: what is installed, by links, where something can be written.

Spark puts `python/lib/pyspark.zip` of its home before everything else on the path of its Python processes,
and Python keeps no compiled form of what it imports from there: each of the many processes of a query
compiles PySpark anew, for three times the time. Without it they import the package that is installed. And
`local-cluster` keeps its working files in this directory.
"""

from pathlib import Path

import pyspark

INSTALLED = Path(pyspark.__file__).parent


def light_home(directory: Path) -> Path:
    directory.mkdir(exist_ok=True)
    for name in ("bin", "jars", "sbin"):
        if not (directory / name).exists():
            (directory / name).symlink_to(INSTALLED / name)
    return directory
