"""Quota windows, metrics and telemetry."""

TABLE = """
client.quota.callback.class  class  null  -  low  read-only  accepted
    Java class that decides quotas.
quota.window.num  int  11  >=1  low  read-only  planned
    Samples over which client rates are measured.
quota.window.size.seconds  int  1  >=1  low  read-only  planned
    Length of one sample of client rates.
replication.quota.window.num  int  11  >=1  low  read-only  planned
    Samples over which replication rates are measured.
replication.quota.window.size.seconds  int  1  >=1  low  read-only  planned
    Length of one sample of replication rates.
controller.quota.window.num  int  11  >=1  low  read-only  planned
    Samples over which rates of changes to topics are measured.
controller.quota.window.size.seconds  int  1  >=1  low  read-only  planned
    Length of one sample of rates of changes to topics.
alter.log.dirs.replication.quota.window.num  int  11  >=1  low  read-only  accepted
    Samples over which moves between log directories are measured.
alter.log.dirs.replication.quota.window.size.seconds  int  1  >=1  low  read-only  accepted
    Length of one sample of moves between log directories.
metric.reporters  list  org.apache.kafka.common.metrics.JmxReporter  -  low  cluster-wide  accepted
    Java classes that are told about metrics.
metrics.num.samples  int  2  >=1  low  read-only  accepted
    Samples that a metric is computed from.
metrics.sample.window.ms  long  30000  >=1  low  read-only  accepted
    Length of one sample of a metric.
metrics.recording.level  string  INFO  -  low  read-only  accepted
    Least importance of the metrics that are recorded.
kafka.metrics.reporters  list  ""  -  low  read-only  accepted
    Java classes that report Kafka's older metrics.
kafka.metrics.polling.interval.secs  int  10  >=1  low  read-only  accepted
    Pause between two reports of Kafka's older metrics.
telemetry.max.bytes  int  1048576  >=1  low  read-only  accepted
    Largest push of metrics that a client may send.
config.providers  list  ""  -  low  cluster-wide  accepted
    Java classes that replace placeholders in settings.
"""
