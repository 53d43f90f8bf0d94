"""Keys that Kafka 3 knew and Kafka 4 does not. A file that still has them loads, with a word about each."""

_ZOOKEEPER = "has no effect: of the ways to ZooKeeper, the plain one is there"
_MIGRATION = "is not needed: clusters on ZooKeeper stay there"
_INTER_BROKER = "spoke of versions that are no longer negotiated; remove it"
_FORMAT = "is not needed: records are always kept in the current format; remove it"

REMOVED = {
    "zookeeper.set.acl": _ZOOKEEPER,
    "zookeeper.max.in.flight.requests": _ZOOKEEPER,
    "zookeeper.metadata.migration.enable": _MIGRATION,
    "zookeeper.metadata.migration.min.batch.size": _MIGRATION,
    "zookeeper.ssl.client.enable": _ZOOKEEPER,
    "zookeeper.clientCnxnSocket": _ZOOKEEPER,
    "zookeeper.ssl.keystore.location": _ZOOKEEPER,
    "zookeeper.ssl.keystore.password": _ZOOKEEPER,
    "zookeeper.ssl.keystore.type": _ZOOKEEPER,
    "zookeeper.ssl.truststore.location": _ZOOKEEPER,
    "zookeeper.ssl.truststore.password": _ZOOKEEPER,
    "zookeeper.ssl.truststore.type": _ZOOKEEPER,
    "zookeeper.ssl.protocol": _ZOOKEEPER,
    "zookeeper.ssl.enabled.protocols": _ZOOKEEPER,
    "zookeeper.ssl.cipher.suites": _ZOOKEEPER,
    "zookeeper.ssl.endpoint.identification.algorithm": _ZOOKEEPER,
    "zookeeper.ssl.crl.enable": _ZOOKEEPER,
    "zookeeper.ssl.ocsp.enable": _ZOOKEEPER,
    "control.plane.listener.name": "is not needed: brokers ask each other at inter.broker.listener.name",
    "inter.broker.protocol.version": _INTER_BROKER,
    "log.message.format.version": _FORMAT,
    "log.message.downconversion.enable": _FORMAT,
    "log.message.timestamp.difference.max.ms": (
        "was replaced by log.message.timestamp.before.max.ms and log.message.timestamp.after.max.ms"
    ),
    "password.encoder.secret": "is not needed: settings are not kept in ZooKeeper",
    "password.encoder.old.secret": "is not needed: settings are not kept in ZooKeeper",
    "password.encoder.keyfactory.algorithm": "is not needed: settings are not kept in ZooKeeper",
    "password.encoder.cipher.algorithm": "is not needed: settings are not kept in ZooKeeper",
    "password.encoder.key.length": "is not needed: settings are not kept in ZooKeeper",
    "password.encoder.iterations": "is not needed: settings are not kept in ZooKeeper",
    "delegation.token.master.key": "was renamed delegation.token.secret.key",
    "leader.imbalance.per.broker.percentage": "no longer exists: leaders are balanced per partition",
    "controlled.shutdown.max.retries": "no longer exists; remove it",
    "controlled.shutdown.retry.backoff.ms": "no longer exists; remove it",
    "offsets.commit.required.acks": "no longer exists: commits wait for all in-sync replicas",
    "auto.include.jmx.reporter": "no longer exists: metrics are not reported through JMX",
    "host.name": "was replaced by listeners",
    "port": "was replaced by listeners",
    "advertised.host.name": "was replaced by advertised.listeners",
    "advertised.port": "was replaced by advertised.listeners",
    "quota.producer.default": "was replaced by quotas that are set while the broker runs",
    "quota.consumer.default": "was replaced by quotas that are set while the broker runs",
    "group.coordinator.new.enable": "no longer exists; remove it",
    "group.share.enable": "no longer exists; remove it",
    "group.share.max.groups": "no longer exists; remove it",
}
