"""Tiered storage as Kafka has it. Riverlog's own archive has other keys."""

TABLE = """
remote.log.storage.system.enable  boolean  false  -  medium  read-only  accepted
    Switch tiered storage on for the node.
remote.log.storage.manager.class.name  string  null  non-empty  medium  read-only  accepted
    Java class that stores segments remotely.
remote.log.storage.manager.class.path  string  null  -  medium  read-only  accepted
    Class path of the remote storage class.
remote.log.storage.manager.impl.prefix  string  rsm.config.  non-empty  medium  read-only  accepted
    Prefix of the settings that are passed to the remote storage class.
remote.log.metadata.manager.class.name  string  \
      org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager  \
      non-empty  medium  read-only  accepted
    Java class that keeps track of remote segments.
remote.log.metadata.manager.class.path  string  null  -  medium  read-only  accepted
    Class path of the class that keeps track of remote segments.
remote.log.metadata.manager.impl.prefix  string  rlmm.config.  non-empty  medium  read-only  accepted
    Prefix of the settings that are passed to the class that keeps track of remote segments.
remote.log.metadata.manager.listener.name  string  null  non-empty  medium  read-only  accepted
    Listener over which remote segment metadata is exchanged.
remote.log.metadata.custom.metadata.max.bytes  int  128  >=0  low  read-only  accepted
    Largest note that a storage class may attach to a remote segment.
remote.log.index.file.cache.total.size.bytes  long  1073741824  >=1  low  cluster-wide  accepted
    Disk space for cached indexes of remote segments.
remote.log.index.file.cache.ttl.ms  long  900000  >=-1  low  read-only  accepted  internal
    How long an unused cached index is kept; -1 has no limit.
remote.log.manager.thread.pool.size  int  2  >=1  medium  read-only  accepted
    Threads for the duties of tiered storage.
remote.log.manager.copier.thread.pool.size  int  10  >=1  medium  cluster-wide  accepted
    Threads that copy segments to remote storage.
remote.log.manager.expiration.thread.pool.size  int  10  >=1  medium  cluster-wide  accepted
    Threads that delete expired remote segments.
remote.log.manager.follower.thread.pool.size  int  2  >=1  medium  cluster-wide  accepted
    Threads for the tiered storage duties of followers.
remote.log.manager.task.interval.ms  long  30000  >=1  low  read-only  accepted
    Pause between two rounds of copying and deleting.
remote.log.manager.task.retry.backoff.ms  long  500  >=1  low  read-only  accepted  internal
    First pause before a failed round is repeated.
remote.log.manager.task.retry.backoff.max.ms  long  30000  >=1  low  read-only  accepted  internal
    Longest pause before a failed round is repeated.
remote.log.manager.task.retry.jitter  double  0.2  0..0.5  low  read-only  accepted  internal
    Random part of the pause before a failed round is repeated.
remote.log.manager.copy.max.bytes.per.second  long  9223372036854775807  >=1  medium  cluster-wide  accepted
    Bound on the bytes copied to remote storage per second.
remote.log.manager.copy.quota.window.num  int  11  >=1  medium  read-only  accepted
    Samples over which the copy rate is measured.
remote.log.manager.copy.quota.window.size.seconds  int  1  >=1  medium  read-only  accepted
    Length of one sample of the copy rate.
remote.log.manager.fetch.max.bytes.per.second  long  \
      9223372036854775807  >=1  medium  cluster-wide  accepted
    Bound on the bytes read from remote storage per second.
remote.log.manager.fetch.quota.window.num  int  11  >=1  medium  read-only  accepted
    Samples over which the remote read rate is measured.
remote.log.manager.fetch.quota.window.size.seconds  int  1  >=1  medium  read-only  accepted
    Length of one sample of the remote read rate.
remote.log.reader.threads  int  10  >=1  medium  cluster-wide  accepted
    Threads that read from remote storage for fetches.
remote.log.reader.max.pending.tasks  int  100  >=1  medium  read-only  accepted
    Remote reads that may wait before further ones are refused.
remote.fetch.max.wait.ms  int  500  >=1  medium  cluster-wide  accepted
    How long a fetch waits for data from remote storage.
remote.list.offsets.request.timeout.ms  long  30000  >=1  medium  cluster-wide  accepted
    How long a lookup of offsets waits for remote storage.
follower.fetch.last.tiered.offset.enable  boolean  false  -  medium  cluster-wide  accepted
    Let a new follower begin behind the data that is already in remote storage.
log.local.retention.ms  long  -2  >=-2  medium  cluster-wide  accepted
    Age after which tiered segments are deleted locally; -2 takes the retention of the topic.
log.local.retention.bytes  long  -2  >=-2  medium  cluster-wide  accepted
    Local size above which tiered segments are deleted; -2 takes the retention of the topic.
"""
