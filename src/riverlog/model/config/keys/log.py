"""How the logs of partitions are kept: places, segments, retention, flushing, timestamps, compression."""

TABLE = """
log.dir  list  riverlog-data  -  high  read-only  works
    Directory for the data of this node; used only where log.dirs is not set.
log.dirs  list  null  -  high  read-only  works
    Comma-separated directories among which the partitions of this node are spread.
cordoned.log.dirs  list  ""  -  medium  per-broker  accepted
    Log directories that take no new partitions.
log.dir.failure.timeout.ms  long  30000  >=1  low  read-only  accepted
    How long a node may fail to report a broken log directory before it shuts down.
log.segment.bytes  int  1073741824  >=1048576  high  cluster-wide  works
    Size at which a segment file is closed and the next one begun.
log.roll.ms  long  null  -  high  cluster-wide  works
    Age at which a segment is closed even if it is not full; goes before log.roll.hours.
log.roll.hours  int  168  >=1  high  read-only  works
    Age in hours at which a segment is closed even if it is not full.
log.roll.jitter.ms  long  null  -  high  cluster-wide  works
    Upper bound of a random amount taken off the rolling age, so that partitions do not roll together.
log.roll.jitter.hours  int  0  >=0  high  read-only  works
    The same as log.roll.jitter.ms, in hours; used where that is not set.
log.retention.ms  long  null  -  high  cluster-wide  works
    Age after which closed segments are deleted; -1 keeps them for ever. Goes before minutes and hours.
log.retention.minutes  int  null  -  high  read-only  works
    Retention age in minutes; used where log.retention.ms is not set.
log.retention.hours  int  168  -  high  read-only  works
    Retention age in hours; used where neither milliseconds nor minutes are set.
log.retention.bytes  long  -1  -  high  cluster-wide  works
    Size of a partition above which its oldest segments are deleted; -1 sets no bound.
log.retention.check.interval.ms  long  300000  >=1  medium  read-only  works
    Pause between two looks for segments whose retention has run out.
log.cleanup.policy  list  delete  compact|delete  medium  cluster-wide  works
    What becomes of old data: delete removes whole segments; compact keeps the last record of each key, and
    asks for keys.
log.segment.delete.delay.ms  long  60000  >=0  high  cluster-wide  works
    How long the files of a deleted segment stay on disk under another name, for readers that still use them.
log.index.interval.bytes  int  4096  >=0  medium  cluster-wide  works
    Bytes of records between two entries of the offset index.
log.index.size.max.bytes  int  10485760  >=4  medium  cluster-wide  works
    Largest size of an offset or time index file; a full index closes its segment.
log.preallocate  boolean  false  -  medium  cluster-wide  accepted
    Reserve the whole size of a segment file when it is made.
log.flush.interval.messages  long  9223372036854775807  >=1  high  cluster-wide  works
    Records appended to a partition after which they are forced to disk.
log.flush.interval.ms  long  null  -  high  cluster-wide  works
    Longest time that appended records may stay in memory before they are forced to disk.
log.flush.scheduler.interval.ms  long  9223372036854775807  -  high  read-only  works
    Pause between two looks for partitions whose flush is due.
log.flush.offset.checkpoint.interval.ms  int  60000  >=0  high  read-only  accepted
    Pause between two writes of the recovery points. Here they are written with the high watermarks.
log.flush.start.offset.checkpoint.interval.ms  int  60000  >=0  high  read-only  accepted
    Pause between two writes of the first offsets. Here they are written with the high watermarks.
log.initial.task.delay.ms  long  30000  >=0  low  read-only  works  internal
    Wait after start-up before the periodic duties on the logs begin.
log.message.timestamp.type  string  CreateTime  CreateTime|LogAppendTime  medium  cluster-wide  works
    Whose time a record carries: CreateTime keeps the producer's, LogAppendTime puts the broker's.
log.message.timestamp.before.max.ms  long  9223372036854775807  >=0  medium  cluster-wide  works
    How far in the past the timestamp of a record may lie when it arrives.
log.message.timestamp.after.max.ms  long  3600000  >=0  medium  cluster-wide  works
    How far in the future the timestamp of a record may lie when it arrives.
message.max.bytes  int  1048588  >=0  high  cluster-wide  works
    Largest batch of records that is accepted, after compression.
compression.type  string  producer  uncompressed|zstd|lz4|snappy|gzip|producer  high  cluster-wide  works
    How batches are stored: as the producer sent them, or compressed by the broker in the given way.
compression.gzip.level  int  -1  1..9|-1  medium  cluster-wide  works
    Effort of gzip where the broker compresses; -1 is the library's own choice.
compression.lz4.level  int  9  1..17  medium  cluster-wide  works
    Effort of lz4 where the broker compresses.
compression.zstd.level  int  3  -131072..22  medium  cluster-wide  works
    Effort of zstd where the broker compresses; negative levels are faster.
num.recovery.threads.per.data.dir  int  2  >=1  high  cluster-wide  accepted
    Threads per log directory that load the logs at start-up and flush them at shutdown.
log.cleaner.enable  boolean  true  -  medium  read-only  works
    Run compaction in the background.
log.cleaner.threads  int  1  >=0  medium  cluster-wide  works
    Threads that compact logs.
log.cleaner.backoff.ms  long  15000  >=0  medium  cluster-wide  works
    Pause of the compaction when it finds nothing to do.
log.cleaner.dedupe.buffer.size  long  134217728  -  medium  cluster-wide  works
    Memory for the keys that one compaction remembers, over all threads.
log.cleaner.io.buffer.size  int  524288  >=0  medium  cluster-wide  works
    Memory for reading and writing during compaction, over all threads.
log.cleaner.io.buffer.load.factor  double  0.9  -  medium  cluster-wide  works
    How full the table of keys may become before a compaction stops taking more.
log.cleaner.io.max.bytes.per.second  double  1.7976931348623157E308  -  medium  cluster-wide  works
    Bound on what compaction reads and writes per second.
log.cleaner.delete.retention.ms  long  86400000  >=0  medium  cluster-wide  works
    How long a tombstone survives compaction, so that late readers still see the deletion.
log.cleaner.min.cleanable.ratio  double  0.5  0..1  medium  cluster-wide  works
    Share of a log that must be new since the last compaction before it is compacted again.
log.cleaner.min.compaction.lag.ms  long  0  >=0  medium  cluster-wide  works
    Time during which a record is safe from compaction.
log.cleaner.max.compaction.lag.ms  long  9223372036854775807  >=1  medium  cluster-wide  works
    Time after which a record is due for compaction however small the new share of its log.
producer.id.expiration.ms  int  86400000  >=1  low  cluster-wide  works
    How long the state of a silent idempotent producer is remembered.
producer.id.expiration.check.interval.ms  int  600000  >=1  low  read-only  works  internal
    Pause between two looks for producers whose state has expired.
num.partitions  int  1  >=1  medium  read-only  works
    Partitions of a topic that is created without saying how many.
auto.create.topics.enable  boolean  true  -  high  read-only  works
    Create a topic when a client that allows it asks for its metadata.
delete.topic.enable  boolean  true  -  high  read-only  works
    Allow topics to be deleted.
create.topic.policy.class.name  class  null  -  low  read-only  accepted
    Java class that may refuse new topics.
alter.config.policy.class.name  class  null  -  low  read-only  accepted
    Java class that may refuse changes of settings.
"""
