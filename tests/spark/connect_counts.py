"""A client of Spark Connect, in a process of its own: counts a DataFrame again for each line of its stdin."""

import sys

from pyspark.sql import SparkSession


def main(remote: str, bootstrap: str, topic: str) -> None:
    session = SparkSession.builder.remote(remote).getOrCreate()
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic}
    frame = session.read.format("riverlog").options(**options).load()
    frame.createOrReplaceTempView(topic)
    for _ in sys.stdin:
        counts = [each.count() for each in (frame, frame.filter("offset < 3"), frame, session.table(topic))]
        sys.stdout.write(" ".join(map(str, counts)) + "\n")
        sys.stdout.flush()
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
