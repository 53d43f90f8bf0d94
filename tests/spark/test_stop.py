"""`query.stop()` while tasks write: no error of ours is logged, and nothing stays open."""

import os
import re
import subprocess
import sys
from pathlib import Path

from riverlog.spark.spark_home import light_home
from riverlog.testing import Broker
from tests.spark.sink_parts import values_of
from tests.spark.stopped_query import STOPPED, STOPPING

ROWS = 40_000
OF_SPARK = re.compile(
    r"ERROR (Utils: Aborting task|DataWritingSparkTask: Abort(ing|ed) commit|"
    r"WriteToDataSourceV2Exec: Data source write support .* (is aborting|aborted)\.$)"
)
"""What Spark 4.3 itself logs for every sink whose epoch is cut off."""


def test_a_stop_within_an_epoch_logs_no_error_of_the_sink(broker: Broker, tmp_path: Path) -> None:
    broker.create_topic("stopped-in", partitions=2)
    broker.create_topic("stopped-out", partitions=2)
    broker.produce("stopped-in", *(b"%d" % number for number in range(ROWS)))
    arguments = [broker.bootstrap_servers, "stopped-in", "stopped-out", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.stopped_query", *arguments],
        cwd=Path(__file__).parents[2],
        env={
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_HOME": str(light_home(tmp_path / "home")),
        },
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    told = done.stderr.partition(STOPPING)[2].partition(STOPPED)[0]
    errors = [line for line in told.splitlines() if " ERROR " in line and not OF_SPARK.search(line)]
    assert errors == []
    assert values_of(broker, "stopped-out") == {}
