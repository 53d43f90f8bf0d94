"""Authentication, authorisation and TLS. Until they are served, only PLAINTEXT listeners are."""

TABLE = """
authorizer.class.name  string  ""  -  low  read-only  accepted
    Java class that decides who may do what.
principal.builder.class  class  \
      org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder  \
      -  medium  per-broker  accepted
    Java class that makes a principal out of an authenticated connection.
security.providers  string  null  -  low  read-only  accepted
    Java security providers to register.
connections.max.reauth.ms  long  0  -  medium  read-only  planned
    Age at which a SASL login must be repeated; 0 never asks for it.
delegation.token.secret.key  password  null  -  medium  read-only  accepted
    Secret with which delegation tokens are signed; none switches them off.
delegation.token.expiry.time.ms  long  86400000  >=1  medium  read-only  accepted
    Life of a delegation token until it is renewed.
delegation.token.max.lifetime.ms  long  604800000  >=1  medium  read-only  accepted
    Age beyond which a delegation token cannot be renewed.
delegation.token.expiry.check.interval.ms  long  3600000  >=1  low  read-only  accepted
    Pause between two removals of expired delegation tokens.
sasl.enabled.mechanisms  list  GSSAPI  -  medium  per-broker  planned
    SASL mechanisms that clients may use.
sasl.jaas.config  password  null  -  medium  per-broker  planned
    Login entry for SASL in the format of JAAS files; usually given per listener and mechanism.
sasl.mechanism.inter.broker.protocol  string  GSSAPI  -  medium  per-broker  planned
    SASL mechanism between nodes.
sasl.mechanism.controller.protocol  string  GSSAPI  -  high  read-only  accepted
    SASL mechanism between brokers and KRaft controllers.
sasl.server.max.receive.size  int  524288  -  medium  read-only  planned
    Largest message of a client during a SASL login.
sasl.server.callback.handler.class  class  null  -  medium  read-only  accepted
    Java class that checks credentials on the server.
sasl.client.callback.handler.class  class  null  -  medium  read-only  accepted
    Java class that supplies credentials on the client side of a connection between nodes.
sasl.login.class  class  null  -  medium  read-only  accepted
    Java class that performs the login of this node.
sasl.login.callback.handler.class  class  null  -  medium  read-only  accepted
    Java class that supplies what the login of this node needs.
sasl.login.connect.timeout.ms  int  null  -  low  read-only  accepted
    Time limit for connecting to a login provider.
sasl.login.read.timeout.ms  int  null  -  low  read-only  accepted
    Time limit for the answer of a login provider.
sasl.login.retry.backoff.ms  long  100  -  low  read-only  accepted
    First pause before a failed call to a login provider is repeated.
sasl.login.retry.backoff.max.ms  long  10000  -  low  read-only  accepted
    Longest pause between calls to a login provider.
sasl.login.refresh.window.factor  double  0.8  -  medium  per-broker  accepted
    Part of a credential's life after which it is renewed.
sasl.login.refresh.window.jitter  double  0.05  -  medium  per-broker  accepted
    Random part added to the moment of renewal.
sasl.login.refresh.min.period.seconds  short  60  -  medium  per-broker  accepted
    Least time between two renewals of a credential.
sasl.login.refresh.buffer.seconds  short  300  -  medium  per-broker  accepted
    Time that must remain before expiry when a credential is renewed.
sasl.kerberos.service.name  string  null  -  medium  per-broker  accepted
    Kerberos service name of the nodes.
sasl.kerberos.kinit.cmd  string  /usr/bin/kinit  -  medium  per-broker  accepted
    Path of the kinit command.
sasl.kerberos.principal.to.local.rules  list  DEFAULT  -  medium  per-broker  accepted
    Rules that turn Kerberos principals into short names.
sasl.kerberos.min.time.before.relogin  long  60000  -  medium  per-broker  accepted
    Least time between two Kerberos logins.
sasl.kerberos.ticket.renew.jitter  double  0.05  -  medium  per-broker  accepted
    Random part of the time at which a Kerberos ticket is renewed.
sasl.kerberos.ticket.renew.window.factor  double  0.8  -  medium  per-broker  accepted
    Part of a ticket's life after which it is renewed.
ssl.keystore.type  string  JKS  -  medium  per-broker  planned
    File format of the node's key and certificate.
ssl.keystore.location  string  null  -  medium  per-broker  planned
    File with the node's key and certificate.
ssl.keystore.password  password  null  -  medium  per-broker  planned
    Password of the key store file.
ssl.keystore.key  password  null  -  medium  per-broker  planned
    Private key of the node as PEM text, instead of a file.
ssl.keystore.certificate.chain  password  null  -  medium  per-broker  planned
    Certificate chain of the node as PEM text, instead of a file.
ssl.key.password  password  null  -  medium  per-broker  planned
    Password of the private key.
ssl.truststore.type  string  JKS  -  medium  per-broker  planned
    File format of the trusted certificates.
ssl.truststore.location  string  null  -  medium  per-broker  planned
    File with the trusted certificates.
ssl.truststore.password  password  null  -  medium  per-broker  planned
    Password of the trust store file.
ssl.truststore.certificates  password  null  -  medium  per-broker  planned
    Trusted certificates as PEM text, instead of a file.
ssl.client.auth  string  none  required|requested|none  medium  per-broker  planned
    Whether clients must show a certificate.
ssl.enabled.protocols  list  TLSv1.2,TLSv1.3  -  medium  per-broker  planned
    TLS versions that may be used.
ssl.protocol  string  TLSv1.3  -  medium  per-broker  accepted
    TLS version with which a Java TLS context is made.
ssl.cipher.suites  list  ""  -  medium  per-broker  planned
    Cipher suites that may be used; all usual ones where none is named.
ssl.endpoint.identification.algorithm  string  https  -  low  per-broker  planned
    How the host name in a server's certificate is checked; empty checks nothing.
ssl.principal.mapping.rules  string  DEFAULT  -  low  read-only  planned
    Rules that turn the distinguished name of a client certificate into a user name.
ssl.allow.dn.changes  boolean  false  -  low  read-only  accepted
    Let a replaced key store have another distinguished name.
ssl.allow.san.changes  boolean  false  -  low  read-only  accepted
    Let a replaced key store drop alternative names.
ssl.provider  string  null  -  medium  per-broker  accepted
    Java security provider for TLS.
ssl.engine.factory.class  class  null  -  low  per-broker  accepted
    Java class that makes TLS engines.
ssl.keymanager.algorithm  string  SunX509  -  medium  per-broker  accepted
    Java algorithm of the key manager.
ssl.trustmanager.algorithm  string  PKIX  -  medium  per-broker  accepted
    Java algorithm of the trust manager.
ssl.secure.random.implementation  string  null  -  low  per-broker  accepted
    Java generator of random numbers for TLS.
"""
