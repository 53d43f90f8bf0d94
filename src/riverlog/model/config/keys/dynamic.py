"""Settings of a broker that exist only while it runs: they are altered, never written in a file."""

TABLE = """
leader.replication.throttled.rate  long  9223372036854775807  >=0  medium  cluster-wide  planned
    Bytes per second that leaders on this node send to throttled followers.
follower.replication.throttled.rate  long  9223372036854775807  >=0  medium  cluster-wide  planned
    Bytes per second that throttled followers on this node copy.
replica.alter.log.dirs.io.max.bytes.per.second  long  9223372036854775807  >=0  medium  cluster-wide  works
    Bytes per second that moves between log directories of this node may take.
"""
