"""Which tests stay together when several processes share them: those that share something costly.

xdist's own way, marks, gets lost between its processes; this one goes by the files.
"""

from typing import Any, Final

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

TOGETHER: Final = {
    "tests/differential/": "one replay",
    "tests/metadata/test_zookeeper_": "one ensemble",
    "tests/hostile/test_seen_in_the_wild.py": "one broker under a memory limit",
    # Not all at once, they would be late: Spark gives its Python processes ten seconds to start.
    "tests/spark/test_cluster_pipeline.py": "Sparks of several processes",
    "tests/delivery/test_spark_": "Sparks of several processes",
    "tests/spark/": "one Spark",
}


class Sharing(LoadScopeScheduling):  # type: ignore[misc]
    def _split_scope(self, nodeid: str) -> str:
        return next((name for path, name in TOGETHER.items() if nodeid.startswith(path)), nodeid)


def scheduler(config: pytest.Config, log: Any) -> Sharing:
    return Sharing(config, log)
