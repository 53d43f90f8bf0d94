"""Orders joined with a compacted topic of customers, which is read as a table.

    orders, customers  ->  orders.enriched

The topic `customers` holds, under the id of a customer, what is known now; a record without a value says that
the customer is gone. For each batch of orders it is read anew, so an order meets the customer as of then. An
order of an unknown customer goes out too, without a name.
"""

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from riverlog.spark import decode, latest_by_key

spark = SparkSession.active()

BROKERS = {"kafka.bootstrap.servers": os.environ.get("RIVERLOG_BOOTSTRAP", "localhost:9092")}
ORDER = "id BIGINT NOT NULL, customer STRING NOT NULL, cents BIGINT NOT NULL"
CUSTOMER = "name STRING NOT NULL, tier STRING"

dp.create_sink("enriched_orders", "riverlog", {**BROKERS, "topic": "orders.enriched"})


def orders() -> DataFrame:
    records = (
        spark.readStream.format("riverlog")
        .options(**BROKERS)
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .load()
    )
    return decode(records, "json", schema=ORDER, into="order").good.select("order.*")


def customers() -> DataFrame:
    records = spark.read.format("riverlog").options(**BROKERS).option("subscribe", "customers").load()
    known = decode(latest_by_key(records), "json", schema=CUSTOMER, into="customer").good
    return known.select(sf.col("key").cast("string").alias("customer"), "customer.name", "customer.tier")


@dp.append_flow(target="enriched_orders")
def orders_with_customers() -> DataFrame:
    joined = orders().join(customers(), on="customer", how="left")
    return joined.select(
        sf.col("customer").alias("key"),
        sf.to_json(sf.struct("id", "customer", "cents", "name", "tier")).alias("value"),
    )
