"""A cluster on ZooKeeper: keys that Kafka 3 knew, and Kafka 4 does not.

They are `internal` so that a node which does not use them describes itself as Kafka 4 does.
"""

TABLE = """
zookeeper.connect  string  null  -  high  read-only  works  internal
    Servers of the ZooKeeper ensemble by which brokers are one cluster, and the path below which the cluster
    is, as in a:2181,b:2181/prod. Without it, metadata is this node's own.
zookeeper.session.timeout.ms  int  9000  >=100  high  read-only  works  internal
    Silence after which ZooKeeper takes a broker for dead.
zookeeper.connection.timeout.ms  int  null  >=1  high  read-only  works  internal
    How long a starting broker waits for ZooKeeper; without it, until ZooKeeper is there.
broker.id.generation.enable  boolean  true  -  medium  read-only  works  internal
    Let broker.id=-1 stand for the next number that the cluster has not given out yet.
reserved.broker.max.id  int  1000  >=0  medium  read-only  works  internal
    Numbers above it are given to brokers with broker.id=-1.
"""
