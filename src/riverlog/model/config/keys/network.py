"""Listeners, sockets, connections and the bounds of requests."""

TABLE = """
listeners  list  PLAINTEXT://127.0.0.1:9092  -  high  per-broker  works
    Where to listen: NAME://host:port, comma-separated. Port 0 takes a free one.
advertised.listeners  list  null  -  high  read-only  works
    Addresses that clients are told, by listener name, where they differ from those that are bound.
listener.security.protocol.map  string  \
      SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT  -  low  per-broker  works
    Security protocol of each listener name. Only PLAINTEXT is served so far.
early.start.listeners  list  null  -  high  read-only  accepted
    Listeners that take connections before authorisation data is loaded.
inter.broker.listener.name  string  null  -  medium  read-only  works
    Listener over which the nodes of a cluster talk to each other.
security.inter.broker.protocol  string  \
      PLAINTEXT  PLAINTEXT|SSL|SASL_PLAINTEXT|SASL_SSL  medium  read-only  planned
    Security protocol between nodes, where no inter-broker listener is named.
num.network.threads  int  3  >=1  high  cluster-wide  accepted
    Threads per listener that move bytes. Here one event loop does this.
num.io.threads  int  8  >=1  high  cluster-wide  accepted
    Threads that work on requests. Here one event loop does this.
background.threads  int  10  >=1  high  cluster-wide  accepted
    Threads for periodic duties.
queued.max.requests  int  500  >=1  high  read-only  accepted
    Requests that may wait for a thread before the network stops reading.
queued.max.request.bytes  long  -1  -  medium  read-only  works
    Bytes of requests that may be received at once, over all connections, before the network stops reading;
    -1 stands for 256 MiB. One request larger than that is still taken, alone.
socket.send.buffer.bytes  int  102400  -  high  read-only  works
    Send buffer of each connection's socket; -1 leaves it to the system. Where it is not set, the system sizes
    it until a reply is longer than 1 MiB, and from then on that connection has 200 KiB.
socket.receive.buffer.bytes  int  102400  -  high  read-only  works
    Receive buffer of each connection's socket; -1 leaves it to the system, as does leaving it unset.
socket.listen.backlog.size  int  50  >=1  medium  read-only  works
    Connections that the system may hold before they are accepted.
socket.request.max.bytes  int  104857600  >=1  high  read-only  works
    Largest request; a connection that announces more is closed.
socket.connection.setup.timeout.ms  long  10000  -  medium  read-only  accepted
    First time limit for connecting to another node.
socket.connection.setup.timeout.max.ms  long  30000  -  medium  read-only  accepted
    Longest time limit for connecting to another node after repeated failures.
max.connections  int  2147483647  >=0  medium  cluster-wide  works
    Connections that the node holds at once.
max.connections.per.ip  int  2147483647  >=0  medium  cluster-wide  works
    Connections that one address may hold at once, beyond those of other brokers of the cluster.
max.connections.per.ip.overrides  string  ""  -  medium  cluster-wide  works
    Bounds for single addresses, as address:count, comma-separated.
max.connection.creation.rate  int  2147483647  >=0  medium  cluster-wide  planned
    New connections per second that the node takes.
connections.max.idle.ms  long  600000  -  medium  read-only  works
    Time without requests after which a connection is closed.
connection.failed.authentication.delay.ms  int  100  >=0  low  read-only  planned
    How long the answer to a failed login is held back.
request.timeout.ms  int  30000  -  high  read-only  works
    How long a node waits for the answer of another one.
fetch.max.bytes  int  57671680  >=1024  medium  read-only  works
    Most bytes in the answer to one fetch, whatever the client asks for.
max.incremental.fetch.session.cache.slots  int  1000  >=0  medium  read-only  works
    Fetch sessions that are remembered; further ones are answered without a session.
max.request.partition.size.limit  int  2000  >=1  medium  read-only  works
    Most partitions in one answer of DescribeTopicPartitions.
fetch.purgatory.purge.interval.requests  int  1000  -  medium  read-only  accepted
    Finished waits of fetches after which their table is tidied.
producer.purgatory.purge.interval.requests  int  1000  -  medium  read-only  accepted
    Finished waits of produce requests after which their table is tidied.
delete.records.purgatory.purge.interval.requests  int  1  -  medium  read-only  accepted
    Finished waits of record deletions after which their table is tidied.
share.fetch.purgatory.purge.interval.requests  int  1000  -  medium  read-only  accepted
    Finished waits of share fetches after which their table is tidied.
"""
