"""Settings of one group."""

TABLE = """
consumer.session.timeout.ms  int  45000  >=1  medium  cluster-wide  works
    Silence after which a member of this consumer group is removed.
consumer.heartbeat.interval.ms  int  5000  >=1  medium  cluster-wide  works
    Heartbeat interval that members of this consumer group are told.
consumer.assignment.interval.ms  int  1000  >=0  medium  cluster-wide  works
    Least pause between two assignments of this consumer group.
share.session.timeout.ms  int  45000  >=1  medium  cluster-wide  accepted
    Silence after which a member of this share group is removed.
share.heartbeat.interval.ms  int  5000  >=1  medium  cluster-wide  accepted
    Heartbeat interval that members of this share group are told.
share.assignment.interval.ms  int  1000  >=0  medium  cluster-wide  accepted
    Least pause between two assignments of this share group.
share.record.lock.duration.ms  int  30000  >=1000  medium  cluster-wide  accepted
    How long a record that was handed to a member stays its own.
share.delivery.count.limit  int  5  >=2  medium  cluster-wide  accepted
    Attempts to deliver a record before it is given up.
share.partition.max.record.locks  int  2000  >=100  medium  cluster-wide  accepted
    Records of one partition that may be in delivery at once.
share.auto.offset.reset  string  latest  offset-reset  medium  cluster-wide  accepted
    Where a new share group begins to read.
share.isolation.level  string  \
      read_uncommitted  read_committed|read_uncommitted  medium  cluster-wide  accepted
    Whether records of open and aborted transactions are delivered.
share.renew.acknowledge.enable  boolean  true  -  medium  cluster-wide  accepted
    Let members prolong their hold on a record.
streams.session.timeout.ms  int  45000  >=1  medium  cluster-wide  accepted
    Silence after which a member of this streams group is removed.
streams.heartbeat.interval.ms  int  5000  >=1  medium  cluster-wide  accepted
    Heartbeat interval that members of this streams group are told.
streams.assignment.interval.ms  int  1000  >=0  medium  cluster-wide  accepted
    Least pause between two assignments of this streams group.
streams.num.standby.replicas  int  0  >=0  medium  cluster-wide  accepted
    Standby copies of each stateful task.
streams.initial.rebalance.delay.ms  int  3000  >=0  medium  cluster-wide  accepted
    How long the first rebalance of the empty group waits for more members.
"""
