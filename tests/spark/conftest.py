"""One Spark for the whole session, with workers that find the package here, and a broker for each module.

All tests with a Spark run in one process: Spark gives its Python processes ten seconds to start.
"""

import os
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from riverlog.spark.spark_home import light_home
from riverlog.testing import Broker
from tests.spark.quick_spark import QUICK


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    scratch = tmp_path_factory.mktemp("spark")
    os.environ["SPARK_HOME"] = str(light_home(scratch / "home"))
    session = (
        SparkSession.builder.master("local[2]")
        .appName("riverlog-tests")
        .config(map={**QUICK})
        .config("spark.driver.memory", "1g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.local.dir", str(scratch))
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.sql.streaming.checkpointLocation", str(scratch / "checkpoints"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running
