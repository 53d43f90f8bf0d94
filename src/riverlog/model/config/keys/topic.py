"""Settings of a topic, in the order in which Kafka checks them."""

TABLE = """
segment.bytes  int  1073741824  >=1048576  medium  cluster-wide  works
    Size at which a segment file is closed and the next one begun.
segment.ms  long  604800000  >=1  medium  cluster-wide  works
    Age at which a segment is closed even if it is not full.
segment.jitter.ms  long  0  >=0  medium  cluster-wide  works
    Upper bound of a random amount taken off the rolling age.
segment.index.bytes  int  10485760  >=4  medium  cluster-wide  works
    Largest size of an offset or time index file.
flush.messages  long  9223372036854775807  >=1  medium  cluster-wide  works
    Records appended to a partition after which they are forced to disk.
flush.ms  long  9223372036854775807  >=0  medium  cluster-wide  works
    Longest time that appended records may stay in memory before they are forced to disk.
retention.bytes  long  -1  -  medium  cluster-wide  works
    Size of a partition above which its oldest segments are deleted; -1 sets no bound.
retention.ms  long  604800000  >=-1  medium  cluster-wide  works
    Age after which closed segments are deleted; -1 keeps them for ever.
max.message.bytes  int  1048588  >=0  medium  cluster-wide  works
    Largest batch of records that is accepted, after compression.
index.interval.bytes  int  4096  >=0  medium  cluster-wide  works
    Bytes of records between two entries of the offset index.
delete.retention.ms  long  86400000  >=0  medium  cluster-wide  works
    How long a tombstone survives compaction.
min.compaction.lag.ms  long  0  >=0  medium  cluster-wide  works
    Time during which a record is safe from compaction.
max.compaction.lag.ms  long  9223372036854775807  >=1  medium  cluster-wide  works
    Time after which a record is due for compaction.
file.delete.delay.ms  long  60000  >=0  medium  cluster-wide  works
    How long the files of a deleted segment stay on disk under another name.
min.cleanable.dirty.ratio  double  0.5  0..1  medium  cluster-wide  works
    Share of a log that must be new before it is compacted again.
cleanup.policy  list  delete  compact|delete  medium  cluster-wide  works
    What becomes of old data: delete, compact (keeps the last record of each key), both, or neither where it
    is empty.
unclean.leader.election.enable  boolean  false  -  medium  cluster-wide  works
    Let a replica that is behind become leader when no other is left.
min.insync.replicas  int  1  >=1  medium  cluster-wide  works
    Replicas that must hold a record before acks=all is answered.
compression.type  string  producer  uncompressed|zstd|lz4|snappy|gzip|producer  medium  cluster-wide  works
    How batches are stored: as the producer sent them, or compressed by the broker.
compression.gzip.level  int  -1  1..9|-1  medium  cluster-wide  works
    Effort of gzip where the broker compresses; -1 is the library's own choice.
compression.lz4.level  int  9  1..17  medium  cluster-wide  works
    Effort of lz4 where the broker compresses.
compression.zstd.level  int  3  -131072..22  medium  cluster-wide  works
    Effort of zstd where the broker compresses.
preallocate  boolean  false  -  medium  cluster-wide  accepted
    Reserve the whole size of a segment file when it is made.
message.timestamp.type  string  CreateTime  CreateTime|LogAppendTime  medium  cluster-wide  works
    Whose time a record carries: the producer's or the broker's.
message.timestamp.before.max.ms  long  9223372036854775807  >=0  medium  cluster-wide  works
    How far in the past the timestamp of a record may lie when it arrives.
message.timestamp.after.max.ms  long  3600000  >=0  medium  cluster-wide  works
    How far in the future the timestamp of a record may lie when it arrives.
leader.replication.throttled.replicas  list  ""  replicas  medium  cluster-wide  planned
    Replicas, as partition:broker or *, whose reading by followers is throttled on the leader.
follower.replication.throttled.replicas  list  ""  replicas  medium  cluster-wide  planned
    Replicas, as partition:broker or *, whose copying is throttled on the follower.
remote.storage.enable  boolean  false  -  medium  cluster-wide  accepted
    Keep old segments of the topic in remote storage.
local.retention.ms  long  -2  >=-2  medium  cluster-wide  accepted
    Age after which tiered segments are deleted locally; -2 takes retention.ms.
local.retention.bytes  long  -2  >=-2  medium  cluster-wide  accepted
    Local size above which tiered segments are deleted; -2 takes retention.bytes.
remote.log.copy.disable  boolean  false  -  medium  cluster-wide  accepted
    Stop copying segments to remote storage.
remote.log.delete.on.disable  boolean  false  -  medium  cluster-wide  accepted
    Delete the remote segments when remote storage is switched off.
internal.segment.bytes  int  null  -  medium  cluster-wide  works  internal
    Segment size without its usual lower bound, for tests of Kafka.
"""
