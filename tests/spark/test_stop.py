"""`query.stop()` while tasks write: no error of ours is logged, and nothing stays open."""

import re
from pathlib import Path

from riverlog.client.cluster import Cluster
from riverlog.client.open_transactions import list_open
from riverlog.spark.sink.decisions import PREFIX
from riverlog.testing import Broker
from tests.spark.sink_parts import options_for, values_of
from tests.spark.stopped_query import PARTITIONS, ROWS, errors_of_a_stop

OF_SPARK = re.compile(
    r" ERROR (Utils: Aborting task|DataWritingSparkTask: Abort(ing|ed) commit for .*|"
    r"WriteToDataSourceV2Exec: Data source write support .* (is aborting|aborted)\.)$"
)
"""What Spark 4.3 itself logs for every sink whose epoch is cut off; interop/test_spark_connector.py shows
that it is the same with the sink of Spark's connector."""


def test_a_stop_within_an_epoch_logs_no_error_of_the_sink(broker: Broker, tmp_path: Path) -> None:
    broker.create_topic("stopped-in", partitions=PARTITIONS)
    broker.create_topic("stopped-out", partitions=PARTITIONS)
    broker.produce("stopped-in", *(b"%d" % number for number in range(ROWS)))
    errors = errors_of_a_stop(broker.bootstrap_servers, "stopped-in", "stopped-out", tmp_path)
    assert [line for line in errors if not OF_SPARK.search(line)] == []
    with Cluster(options_for(broker, None).client) as cluster:
        assert list_open(cluster, PREFIX) == set()
    assert values_of(broker, "stopped-out") == {}
