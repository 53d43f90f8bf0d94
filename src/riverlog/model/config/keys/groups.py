"""Consumer groups of both protocols and the topic that keeps their offsets."""

TABLE = """
group.min.session.timeout.ms  int  6000  -  medium  read-only  works
    Shortest session timeout that a member of a classic group may ask for.
group.max.session.timeout.ms  int  1800000  -  medium  read-only  works
    Longest session timeout that a member of a classic group may ask for.
group.initial.rebalance.delay.ms  int  3000  -  medium  read-only  works
    How long the first rebalance of an empty classic group waits for more members.
group.max.size  int  2147483647  >=1  medium  read-only  works
    Most members of a classic group.
group.coordinator.rebalance.protocols  list  \
      classic,consumer,streams  consumer|classic|share|streams  medium  read-only  works
    Group protocols that are served.
group.coordinator.threads  int  4  >=1  high  read-only  accepted
    Threads of the group coordinator.
group.coordinator.background.threads  int  2  >=1  high  read-only  accepted
    Threads for the slow work of the group coordinator, such as matching patterns.
group.coordinator.append.linger.ms  int  -1  >=-1  medium  read-only  planned
    How long the group coordinator gathers changes before it writes them; -1 adapts to the load.
group.coordinator.cached.buffer.max.bytes  int  1048588  >=524288  medium  cluster-wide  accepted
    Largest write buffer that the group coordinator keeps for reuse.
group.consumer.assignors  list  uniform,range  -  medium  read-only  works
    Server-side assignors by order of preference.
group.consumer.assignment.interval.ms  int  1000  >=0  medium  cluster-wide  works
    Least pause between two assignments of a consumer group.
group.consumer.min.assignment.interval.ms  int  0  >=0  medium  read-only  works
    Shortest assignment interval that a group may be given.
group.consumer.max.assignment.interval.ms  int  15000  >=0  medium  read-only  works
    Longest assignment interval that a group may be given.
group.consumer.heartbeat.interval.ms  int  5000  >=1  medium  read-only  works
    Heartbeat interval that members of a consumer group are told.
group.consumer.min.heartbeat.interval.ms  int  5000  >=1  medium  read-only  works
    Shortest heartbeat interval that a group may be given.
group.consumer.max.heartbeat.interval.ms  int  15000  >=1  medium  read-only  works
    Longest heartbeat interval that a group may be given.
group.consumer.session.timeout.ms  int  45000  >=1  medium  read-only  works
    Silence after which a member of a consumer group is removed.
group.consumer.min.session.timeout.ms  int  45000  >=1  medium  read-only  works
    Shortest session timeout that a group may be given.
group.consumer.max.session.timeout.ms  int  60000  >=1  medium  read-only  works
    Longest session timeout that a group may be given.
group.consumer.max.size  int  2147483647  >=1  medium  read-only  works
    Most members of a consumer group.
group.consumer.migration.policy  string  \
      bidirectional  ~DISABLED|DOWNGRADE|UPGRADE|BIDIRECTIONAL  medium  read-only  works
    Whether groups may change between the classic and the consumer protocol while they run.
group.consumer.regex.refresh.interval.ms  int  600000  >=10000  medium  read-only  accepted  internal
    Pause after which subscriptions by pattern are matched against the topics again.
offset.metadata.max.bytes  int  4096  -  high  read-only  works
    Longest note that may be stored with a committed offset.
offsets.commit.timeout.ms  int  5000  >=1  high  read-only  works
    How long a commit waits for the replicas of the offsets topic.
offsets.load.buffer.size  int  5242880  >=1  high  read-only  works
    Bytes read at a time when committed offsets are loaded; at most 1 MiB.
offsets.retention.minutes  int  10080  >=1  high  read-only  works
    How long the offsets of an empty group are kept.
offsets.retention.check.interval.ms  long  600000  >=1  high  read-only  works
    Pause between two looks for offsets that have expired.
offsets.topic.compression.codec  int  0  -  high  read-only  works
    Compression of the offsets topic, as a codec number.
offsets.topic.num.partitions  int  50  >=1  high  read-only  works
    Partitions of the offsets topic.
offsets.topic.replication.factor  short  3  >=1  high  read-only  works
    Replicas of the offsets topic.
offsets.topic.segment.bytes  int  104857600  >=1  high  read-only  works
    Segment size of the offsets topic.
"""
