"""Which tests are long: the matrices of crashes, deliveries and Sparks that a first run can do without.

`make test` leaves them out, `make test-long` runs them and nothing else, and CI runs both. Elsewhere they are
tests like any other: `pytest tests/delivery` runs them. This is the only place that says so; whatever is not
below a path of this table is not long. A test belongs here when it is one of many of its kind and takes long,
not because it fails.
"""

from typing import Final

LONG: Final = {
    "tests/cluster/test_group_failover_long.py": "clients whose coordinator fails in one way or another",
    "tests/cluster/test_simulated_failover.py": "coordinators that fail in every state of a transaction",
    "tests/delivery/": "clients, brokers and Sparks that are killed at chosen moments",
    "tests/differential/test_replay_in_pieces.py": "all recordings, with every request taken for a long one",
    "tests/hostile/test_mutations_over_a_socket.py": "a broker as a process, under spoilt bytes",
    "tests/metadata/test_zookeeper_disturbed.py": "a store that is disturbed at each operation",
    "tests/metadata/test_zookeeper_servers.py": "servers of an ensemble that are killed and started",
    "tests/simulation/test_planted_bugs.py": "the simulator finds bugs that are planted in a copy",
    "tests/simulation/test_more_seeds.py": "further seeds of the simulator",
    "tests/spark/test_archive_": "Spark writes and replays archives",
    "tests/spark/test_cluster_pipeline.py": "Spark on a cluster of its own",
    "tests/spark/test_demo.py": "all of `make demo`",
    "tests/spark/test_each_batch.py": "foreachBatch, classic and over Spark Connect",
    "tests/spark/test_examples.py": "all of the examples",
    "tests/spark/test_failover.py": "a stream over the kills of brokers",
    "tests/spark/test_functions_": "decoding in Spark, format by format",
    "tests/spark/test_listening.py": "a listener in classic Spark and over Spark Connect",
    "tests/spark/test_pipeline_runs.py": "pipelines as commands, each with a Spark of its own",
    "tests/spark/test_stop.py": "a query that is stopped, in a Spark of its own",
    "tests/spark/test_triggers.py": "what Spark keeps from sources in Python",
    "tests/storage/cleaning/test_crash.py": "a crash after every write of the cleaner",
    "tests/storage/test_crash.py": "a crash after every write of the log",
}
"""Beginnings of paths, and what the tests below them do."""


def is_long(nodeid: str) -> bool:
    return nodeid.startswith(tuple(LONG))
