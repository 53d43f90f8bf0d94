"""How many bytes each partition takes on its leader's disk."""

from riverlog.cli.connection import Connection


def partition_sizes(connection: Connection, topic: object) -> dict[int, int]:
    return {}
