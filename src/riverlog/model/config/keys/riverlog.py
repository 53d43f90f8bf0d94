"""Settings that Apache Kafka does not have. The prefix `riverlog.` keeps them apart."""

TABLE = """
riverlog.acks.fsync  boolean  false  -  high  cluster-wide  works
    Acknowledge a write, and show it to readers, only when it is on disk. Writes that wait together share
    one flush.
riverlog.validate.records  boolean  false  -  medium  cluster-wide  works
    Decompress and check every record on the way in, also where the topic does not need it.
riverlog.decompressed.max.bytes  int  268435456  >=1048576  medium  cluster-wide  works
    Largest size to which one batch may decompress when its records are looked at; a larger one is refused.
riverlog.lease.strict  boolean  true  -  medium  read-only  works
    Without a session with the metadata store, refuse acks=0 and acks=1 where another replica may have been
    elected. false lets them through, as Apache Kafka does, and what is written so may be lost.
riverlog.open.files.max  int  null  >=16  medium  read-only  works
    Segment and index files that are held open at once. Without it, a share of the limit of the process.
riverlog.open.logs.max  int  5000  >=1  medium  read-only  works
    Logs that stay open at once. Beyond it those are closed that nobody has written or read for a while and
    of which all replicas in sync have everything; they are opened again when they are used.
riverlog.replica.lag.max.messages  long  null  >=1  low  read-only  works
    Records by which a follower may be behind and stay in sync. Without it, only
    replica.lag.time.max.ms counts.
riverlog.strays.accept  boolean  false  -  low  read-only  works
    Start even though more than half of the logs, of several topics, belong to no partition in the metadata.
    They are moved aside.
riverlog.host  string  null  -  medium  read-only  works  internal
    Name of the machine with which this broker would fail; without it, an id that the system gives.
riverlog.shared.metadata.dir  string  null  -  medium  read-only  works  internal
    Directory of the metadata that several brokers of this host share, which are one cluster by it. `serve
    --brokers N` sets it. Without it, metadata is in the data directory, for this broker alone.
riverlog.2pc.warn.ms  long  3600000  >=1  low  read-only  works
    Age from which an open transaction of an outside two-phase commit is warned about; it is never timed out.
riverlog.insecure  boolean  false  -  high  read-only  works
    Allow a listener without authentication on an address that other machines can reach.
"""

TOPIC_TABLE = """
riverlog.acks.fsync  boolean  false  -  high  cluster-wide  works
    Acknowledge a write to this topic, and show it to readers, only when it is on disk.
riverlog.validate.records  boolean  false  -  medium  cluster-wide  works
    Decompress and check every record of this topic on the way in.
"""
