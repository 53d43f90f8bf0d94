"""Revenue of each minute and region, though payments come late and out of order.

    payments  ->  revenue

A minute is over when a payment comes whose time is `LATENESS` past its end; then its figure goes out, once
and for good. A payment for a minute that is over is too late and is left out: choose `LATENESS` so that this
does not happen to you, at the price of figures that come that much later. Time is what the payment says
(`at`), not when it arrived.
"""

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from riverlog.spark import decode

spark = SparkSession.active()

BROKERS = {"kafka.bootstrap.servers": os.environ.get("RIVERLOG_BOOTSTRAP", "localhost:9092")}
PAYMENT = "region STRING NOT NULL, cents BIGINT NOT NULL, at TIMESTAMP NOT NULL"
WINDOW = "1 minute"
LATENESS = "2 minutes"

dp.create_sink("revenue", "riverlog", {**BROKERS, "topic": "revenue"})


@dp.append_flow(target="revenue")
def revenue_by_minute() -> DataFrame:
    records = (
        spark.readStream.format("riverlog")
        .options(**BROKERS)
        .option("subscribe", "payments")
        .option("startingOffsets", "earliest")
        .load()
    )
    payments = decode(records, "json", schema=PAYMENT, into="payment").good.select("payment.*")
    minutes = (
        payments.withWatermark("at", LATENESS)
        .groupBy(sf.window("at", WINDOW), "region")
        .agg(sf.count("*").alias("payments"), sf.sum("cents").alias("cents"))
    )
    figures = sf.struct("region", sf.col("window.start").alias("minute"), "payments", "cents")
    return minutes.select(sf.col("region").alias("key"), sf.to_json(figures).alias("value"))
