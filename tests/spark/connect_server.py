"""A Spark Connect server for tests, in a process of its own: prints its port, and ends with its stdin."""

import os
import sys
from pathlib import Path
from typing import Any, Final

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from riverlog.spark.spark_home import light_home
from tests.spark.quick_spark import QUICK

_SERVICE: Final = "org.apache.spark.sql.connect.service.SparkConnectService$"


def main(master: str, scratch: str) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_HOME"] = str(light_home(Path(scratch) / "home"))
    conf = SparkConf().setMaster(master).setAppName("riverlog-tests")
    conf.setAll(
        [
            ("spark.plugins", "org.apache.spark.sql.connect.SparkConnectPlugin"),
            ("spark.connect.grpc.binding.port", "0"),
            ("spark.connect.grpc.binding.address", "127.0.0.1"),
            ("spark.sql.artifact.isolation.enabled", "true"),
            ("spark.sql.artifact.isolation.alwaysApplyClassloader", "true"),
            *QUICK.items(),
            ("spark.driver.host", "127.0.0.1"),
            ("spark.driver.memory", "1g"),
            ("spark.local.dir", scratch),
            ("spark.sql.warehouse.dir", f"{scratch}/warehouse"),
        ]
    )
    context = SparkContext(conf=conf)
    SparkSession(context)
    jvm: Any = context._jvm
    port = getattr(getattr(jvm, _SERVICE), "MODULE$").localPort()
    sys.stdout.write(f"port {port}\n")
    sys.stdout.flush()
    sys.stdin.read()
    context.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
