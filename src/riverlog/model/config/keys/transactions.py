"""Transactions and the topic that keeps their state."""

TABLE = """
transaction.max.timeout.ms  int  900000  >=1  high  read-only  works
    Longest timeout that a transactional producer may ask for.
transactional.id.expiration.ms  int  604800000  >=1  high  read-only  works
    Time without use after which a transactional id is forgotten.
transaction.partition.verification.enable  boolean  true  -  low  cluster-wide  works
    Check that a partition was added to the transaction before records of it are taken.
transaction.two.phase.commit.enable  boolean  true  -  low  read-only  works
    Let producers take part in an outside two-phase commit, without a transaction timeout.
transaction.abort.timed.out.transaction.cleanup.interval.ms  int  10000  >=1  low  read-only  works
    Pause between two looks for transactions to abort because their time has run out.
transaction.remove.expired.transaction.cleanup.interval.ms  int  3600000  >=1  low  read-only  works
    Pause between two looks for transactional ids to forget.
transaction.state.log.load.buffer.size  int  5242880  >=1  high  read-only  works
    Bytes read at a time when the state of transactions is loaded; at most 1 MiB.
transaction.state.log.min.isr  int  2  >=1  high  read-only  works
    In-sync replicas that the transaction state topic needs for a write.
transaction.state.log.num.partitions  int  50  >=1  high  read-only  works
    Partitions of the transaction state topic.
transaction.state.log.replication.factor  short  3  >=1  high  read-only  works
    Replicas of the transaction state topic.
transaction.state.log.segment.bytes  int  104857600  >=1  high  read-only  works
    Segment size of the transaction state topic.
add.partitions.to.txn.retry.backoff.ms  int  20  >=1  high  read-only  works
    First pause before the broker repeats the addition of a partition to a transaction.
add.partitions.to.txn.retry.backoff.max.ms  int  100  >=0  high  read-only  works
    How long the broker goes on repeating the addition of a partition to a transaction.
"""
