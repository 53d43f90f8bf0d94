"""Share groups and streams groups (KIP-932, KIP-1071), and the coordinator of share state."""

TABLE = """
group.share.assignors  list  simple  -  medium  read-only  accepted
    Server-side assignors of share groups.
group.share.assignment.interval.ms  int  1000  >=0  medium  cluster-wide  accepted
    Least pause between two assignments of a share group.
group.share.min.assignment.interval.ms  int  0  >=0  medium  read-only  accepted
    Shortest assignment interval that a share group may be given.
group.share.max.assignment.interval.ms  int  15000  >=0  medium  read-only  accepted
    Longest assignment interval that a share group may be given.
group.share.heartbeat.interval.ms  int  5000  >=1  medium  read-only  accepted
    Heartbeat interval that members of a share group are told.
group.share.min.heartbeat.interval.ms  int  5000  >=1  medium  read-only  accepted
    Shortest heartbeat interval that a share group may be given.
group.share.max.heartbeat.interval.ms  int  15000  >=1  medium  read-only  accepted
    Longest heartbeat interval that a share group may be given.
group.share.session.timeout.ms  int  45000  >=1  medium  read-only  accepted
    Silence after which a member of a share group is removed.
group.share.min.session.timeout.ms  int  45000  >=1  medium  read-only  accepted
    Shortest session timeout that a share group may be given.
group.share.max.session.timeout.ms  int  60000  >=1  medium  read-only  accepted
    Longest session timeout that a share group may be given.
group.share.max.size  int  200  1..1000  medium  read-only  accepted
    Most members of a share group.
group.share.max.share.sessions  int  2000  >=1  medium  read-only  accepted
    Share sessions that a node remembers.
group.share.delivery.count.limit  int  5  2..10  medium  read-only  accepted
    Attempts to deliver a record of a share group before it is given up.
group.share.min.delivery.count.limit  int  2  2..5  medium  read-only  accepted
    Smallest number of delivery attempts that a share group may be given.
group.share.max.delivery.count.limit  int  10  5..25  medium  read-only  accepted
    Largest number of delivery attempts that a share group may be given.
group.share.record.lock.duration.ms  int  30000  1000..3600000  medium  read-only  accepted
    How long a record that was handed to a member of a share group stays its own.
group.share.min.record.lock.duration.ms  int  15000  1000..30000  medium  read-only  accepted
    Shortest lock that a share group may be given.
group.share.max.record.lock.duration.ms  int  60000  30000..3600000  medium  read-only  accepted
    Longest lock that a share group may be given.
group.share.partition.max.record.locks  int  2000  100..10000  medium  read-only  accepted
    Records of one partition that may be in delivery at once in a share group.
group.share.min.partition.max.record.locks  int  100  100..2000  medium  read-only  accepted
    Smallest number of records in delivery that a share group may be given.
group.share.max.partition.max.record.locks  int  4000  2000..10000  medium  read-only  accepted
    Largest number of records in delivery that a share group may be given.
group.share.persister.class.name  string  \
      org.apache.kafka.server.share.persister.DefaultStatePersister  -  medium  read-only  accepted  internal
    Java class that stores the state of share groups.
group.share.initialize.retry.interval.ms  int  30000  >=1  low  read-only  accepted  internal
    Pause before the state of a share partition is set up again after a failure.
share.coordinator.threads  int  1  >=1  medium  read-only  accepted
    Threads of the share coordinator.
share.coordinator.append.linger.ms  int  -1  >=-1  medium  read-only  accepted
    How long the share coordinator gathers changes before it writes them; -1 adapts to the load.
share.coordinator.cached.buffer.max.bytes  int  1048588  >=524288  medium  cluster-wide  accepted
    Largest write buffer that the share coordinator keeps for reuse.
share.coordinator.load.buffer.size  int  5242880  >=1  high  read-only  accepted
    Bytes read at a time when share state is loaded.
share.coordinator.write.timeout.ms  int  5000  >=1  high  read-only  accepted
    How long a write of share state waits for its replicas.
share.coordinator.snapshot.update.records.per.snapshot  int  500  0..500  medium  read-only  accepted
    Changes of share state between two full snapshots.
share.coordinator.cold.partition.snapshot.interval.ms  int  300000  >=1  low  read-only  accepted  internal
    Pause after which the state of quiet share partitions is written in full.
share.coordinator.state.topic.compression.codec  int  0  -  high  read-only  accepted
    Compression of the share state topic, as a codec number.
share.coordinator.state.topic.min.isr  short  2  >=1  high  read-only  accepted
    In-sync replicas that the share state topic needs for a write.
share.coordinator.state.topic.num.partitions  int  50  >=1  high  read-only  accepted
    Partitions of the share state topic.
share.coordinator.state.topic.prune.interval.ms  int  300000  >=1  low  read-only  accepted  internal
    Pause between two deletions of outdated records from the share state topic.
share.coordinator.state.topic.replication.factor  short  3  >=1  high  read-only  accepted
    Replicas of the share state topic.
share.coordinator.state.topic.segment.bytes  int  104857600  >=1  high  read-only  accepted
    Segment size of the share state topic.
group.streams.assignment.interval.ms  int  1000  >=0  medium  cluster-wide  accepted
    Least pause between two assignments of a streams group.
group.streams.min.assignment.interval.ms  int  0  >=0  medium  read-only  accepted
    Shortest assignment interval that a streams group may be given.
group.streams.max.assignment.interval.ms  int  15000  >=0  medium  read-only  accepted
    Longest assignment interval that a streams group may be given.
group.streams.heartbeat.interval.ms  int  5000  >=1  medium  read-only  accepted
    Heartbeat interval that members of a streams group are told.
group.streams.min.heartbeat.interval.ms  int  5000  >=1  medium  read-only  accepted
    Shortest heartbeat interval that a streams group may be given.
group.streams.max.heartbeat.interval.ms  int  15000  >=1  medium  read-only  accepted
    Longest heartbeat interval that a streams group may be given.
group.streams.session.timeout.ms  int  45000  >=1  medium  read-only  accepted
    Silence after which a member of a streams group is removed.
group.streams.min.session.timeout.ms  int  45000  >=1  medium  read-only  accepted
    Shortest session timeout that a streams group may be given.
group.streams.max.session.timeout.ms  int  60000  >=1  medium  read-only  accepted
    Longest session timeout that a streams group may be given.
group.streams.initial.rebalance.delay.ms  int  3000  >=0  medium  read-only  accepted
    How long the first rebalance of an empty streams group waits for more members.
group.streams.max.size  int  2147483647  >=1  medium  read-only  accepted
    Most members of a streams group.
group.streams.num.standby.replicas  int  0  >=0  medium  read-only  accepted
    Standby copies of each stateful task of a streams group.
group.streams.max.standby.replicas  int  2  >=0  medium  read-only  accepted
    Largest number of standby copies that a streams group may be given.
"""
