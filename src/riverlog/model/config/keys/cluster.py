"""The node in its cluster: identity, replication, leadership, and the parts of KRaft."""

TABLE = """
node.id  int  null  >=0  high  read-only  works
    Number of this node, different from every other node's; 1 where it is not set.
broker.id  int  -1  -  high  read-only  works
    Older name of node.id; used where that is not set. -1 takes the next number that a cluster gives.
broker.rack  string  null  -  medium  read-only  works
    Name of the rack or zone in which the node stands, told to clients.
process.roles  list  null  broker|controller  high  read-only  accepted
    Parts that a KRaft node plays. A Riverlog node is always a broker.
default.replication.factor  int  1  -  medium  read-only  works
    Replicas of a topic that is created without saying how many.
min.insync.replicas  int  1  >=1  high  cluster-wide  works
    Replicas that must hold a record before acks=all is answered; fewer in sync refuse the write.
unclean.leader.election.enable  boolean  false  -  high  cluster-wide  works
    Let a replica that is behind become leader when no other is left, losing what it lacks.
unclean.leader.election.interval.ms  long  300000  >=1  medium  read-only  planned  internal
    Pause between two looks for partitions that need an unclean election.
auto.leader.rebalance.enable  boolean  true  -  high  read-only  works
    Give leadership back to the preferred replicas from time to time.
leader.imbalance.check.interval.seconds  long  300  >=1  high  read-only  works
    Pause between two looks at the balance of leaders.
controlled.shutdown.enable  boolean  true  -  medium  read-only  works
    Move leaders away before the node stops.
num.replica.fetchers  int  1  >=1  high  cluster-wide  accepted
    Connections per source node over which followers copy.
replica.fetch.min.bytes  int  1  -  high  read-only  works
    Bytes that a leader collects before it answers a follower.
replica.fetch.max.bytes  int  1048576  >=0  medium  read-only  works
    Bytes per partition that a follower asks for; a larger first batch is still copied.
replica.fetch.response.max.bytes  int  10485760  >=0  medium  read-only  works
    Bytes in all that a follower asks for at once.
replica.fetch.wait.max.ms  int  500  -  high  read-only  works
    How long a leader may hold a follower's fetch that finds too little data.
replica.fetch.backoff.ms  int  1000  >=0  medium  read-only  works
    Pause of a follower after a failed fetch.
replica.lag.time.max.ms  long  30000  -  high  read-only  works
    Time after which a follower that has not caught up leaves the in-sync replicas.
replica.high.watermark.checkpoint.interval.ms  long  5000  -  high  read-only  works
    Pause between two writes of high watermarks, recovery points and first offsets to disk.
replica.socket.timeout.ms  int  30000  -  high  read-only  works
    Time limit of a follower's requests.
replica.socket.receive.buffer.bytes  int  65536  -  high  read-only  accepted
    Receive buffer of a follower's sockets.
replica.selector.class  string  null  -  medium  read-only  works
    Which replica a consumer reads from: the leader, or with rack (or org.apache.kafka.common.replica.
    RackAwareReplicaSelector) one in sync in the rack that the consumer names as client.rack.
num.replica.alter.log.dirs.threads  int  null  -  high  read-only  accepted
    Threads that move replicas between log directories.
controller.socket.timeout.ms  int  30000  -  medium  read-only  accepted
    Time limit of requests between controller and brokers.
broker.heartbeat.interval.ms  int  2000  -  medium  read-only  accepted
    Pause between two signs of life to a KRaft controller.
broker.session.timeout.ms  int  9000  -  medium  read-only  accepted
    Silence after which a KRaft controller takes a broker for dead.
initial.broker.registration.timeout.ms  int  60000  -  medium  read-only  accepted
    How long a starting broker tries to register with a KRaft controller.
server.max.startup.time.ms  long  9223372036854775807  >=0  medium  read-only  accepted  internal
    Longest time that start-up may take.
controller.listener.names  list  null  -  high  read-only  accepted
    Listeners of the KRaft controller. They are left out here, as there is none.
controller.quorum.voters  list  ""  non-empty  high  read-only  accepted
    Members of a fixed KRaft quorum, as id@host:port.
controller.quorum.bootstrap.servers  list  ""  non-empty  high  read-only  accepted
    Addresses through which a KRaft quorum is found.
controller.quorum.auto.join.enable  boolean  false  -  low  read-only  accepted
    Let a KRaft controller join the voters by itself.
controller.quorum.election.timeout.ms  int  1000  >=0  high  read-only  accepted
    Wait of a KRaft candidate for votes.
controller.quorum.election.backoff.max.ms  int  1000  >=0  high  read-only  accepted
    Longest pause between two KRaft elections.
controller.quorum.fetch.timeout.ms  int  2000  >=0  high  read-only  accepted
    Silence of a KRaft leader after which a voter calls an election.
controller.quorum.fetch.max.bytes  int  1048576  >=1  low  read-only  accepted
    Bytes of the metadata log that one quorum fetch asks for.
controller.quorum.fetch.snapshot.max.bytes  int  1048576  >=1  low  read-only  accepted
    Bytes of a metadata snapshot that one quorum fetch asks for.
controller.quorum.request.timeout.ms  int  2000  >=0  medium  read-only  accepted
    Time limit of requests in a KRaft quorum.
controller.quorum.retry.backoff.ms  int  20  >=0  low  read-only  accepted
    Pause before a failed request in a KRaft quorum is sent again.
controller.quorum.append.linger.ms  int  25  >=0  medium  read-only  accepted
    How long a KRaft leader gathers changes before it writes them.
controller.performance.sample.period.ms  long  60000  >=100  medium  read-only  accepted  internal
    Span over which the event times of a KRaft controller are averaged.
controller.performance.always.log.threshold.ms  long  2000  >=0  medium  read-only  accepted  internal
    Duration above which a KRaft controller logs each slow event.
metadata.log.dir  string  null  -  high  read-only  accepted
    Directory of the KRaft metadata log.
metadata.log.segment.bytes  int  1073741824  >=8388608  high  read-only  accepted
    Segment size of the KRaft metadata log.
metadata.log.segment.ms  long  604800000  -  high  read-only  accepted
    Segment age of the KRaft metadata log.
metadata.log.max.record.bytes.between.snapshots  long  20971520  >=1  high  read-only  accepted
    Growth of the KRaft metadata log after which a snapshot is taken.
metadata.log.max.snapshot.interval.ms  long  3600000  >=0  high  read-only  accepted
    Time after which a snapshot of the KRaft metadata is taken.
metadata.max.idle.interval.ms  int  500  >=0  low  read-only  accepted
    Pause after which an idle KRaft leader writes an empty record.
metadata.max.retention.bytes  long  104857600  -  high  read-only  accepted
    Size above which old KRaft metadata and snapshots are deleted.
metadata.max.retention.ms  long  604800000  -  high  read-only  accepted
    Age after which old KRaft metadata and snapshots are deleted.
internal.metadata.log.segment.bytes  int  null  -  low  read-only  accepted  internal
    Segment size of the KRaft metadata log in tests.
internal.metadata.max.batch.size.in.bytes  int  8388608  -  low  read-only  accepted  internal
    Largest batch in the KRaft metadata log in tests.
internal.metadata.delete.delay.millis  long  60000  -  low  read-only  accepted  internal
    Delay before files of the KRaft metadata log are deleted, in tests.
unstable.api.versions.enable  boolean  false  -  high  read-only  accepted  internal
    Offer versions of requests that are still being developed.
unstable.feature.versions.enable  boolean  false  -  high  read-only  accepted  internal
    Offer versions of features that are still being developed.
"""
