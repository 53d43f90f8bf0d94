"""Orders in one topic go to a topic for their region; what cannot be read becomes a dead letter.

    orders  ->  orders.eu, orders.us, orders.elsewhere
            ->  orders.dead

The records keep their key, value and headers. Each order is in one of the topics exactly once, also when
this is killed in the middle and started again.
"""

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

from riverlog.spark import Decoded, dead_letters_as_records, decode, split

spark = SparkSession.active()

BROKERS = {"kafka.bootstrap.servers": os.environ.get("RIVERLOG_BOOTSTRAP", "localhost:9092")}
ORDER = "id BIGINT NOT NULL, region STRING NOT NULL, cents BIGINT NOT NULL"
ROUTES = {
    "orders.eu": "order.region LIKE 'eu-%'",
    "orders.us": "order.region LIKE 'us-%'",
}

# Rows say themselves which topic they go to, in the column `topic`.
dp.create_sink("regions", "riverlog", BROKERS)
dp.create_sink("dead_letters", "riverlog", {**BROKERS, "topic": "orders.dead"})


def orders() -> Decoded:
    records = (
        spark.readStream.format("riverlog")
        .options(**BROKERS)
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .option("includeHeaders", "true")
        .load()
    )
    return decode(records, "json", schema=ORDER, into="order")


@dp.append_flow(target="regions")
def orders_by_region() -> DataFrame:
    routed = split(orders().good, ROUTES, otherwise="orders.elsewhere")
    return routed.select("key", "value", "headers", "topic")


@dp.append_flow(target="dead_letters")
def orders_that_cannot_be_read() -> DataFrame:
    return dead_letters_as_records(orders().dead)
