"""SASL/OAUTHBEARER: tokens, the endpoints they come from and the claims they are checked by."""

TABLE = """
sasl.oauthbearer.token.endpoint.url  string  null  -  medium  read-only  accepted
    Address of the provider that issues tokens.
sasl.oauthbearer.scope  string  null  -  medium  read-only  accepted
    Scope that is asked for with a token.
sasl.oauthbearer.client.credentials.client.id  string  null  -  medium  read-only  accepted
    Client id with which this node asks for a token.
sasl.oauthbearer.client.credentials.client.secret  password  null  -  medium  read-only  accepted
    Client secret with which this node asks for a token.
sasl.oauthbearer.jwt.retriever.class  class  \
      org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever  -  medium  read-only  accepted
    Java class that gets tokens.
sasl.oauthbearer.jwt.validator.class  class  \
      org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator  -  medium  read-only  accepted
    Java class that checks tokens.
sasl.oauthbearer.jwks.endpoint.url  string  null  -  medium  read-only  accepted
    Address of the provider's public keys.
sasl.oauthbearer.jwks.endpoint.refresh.ms  long  3600000  -  low  read-only  accepted
    How long fetched public keys are used.
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms  long  100  -  low  read-only  accepted
    First pause before a failed fetch of public keys is repeated.
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms  long  10000  -  low  read-only  accepted
    Longest pause between fetches of public keys.
sasl.oauthbearer.clock.skew.seconds  int  30  -  low  read-only  accepted
    Difference between the clocks of provider and node that is forgiven.
sasl.oauthbearer.expected.audience  list  ""  -  high  read-only  accepted
    Audiences of which a token must name one.
sasl.oauthbearer.expected.issuer  string  null  -  high  read-only  accepted
    Issuer that a token must name.
sasl.oauthbearer.scope.claim.name  string  scope  -  low  read-only  accepted
    Claim of a token that holds the scope.
sasl.oauthbearer.sub.claim.name  string  sub  -  low  read-only  accepted
    Claim of a token that holds the user.
sasl.oauthbearer.assertion.algorithm  string  RS256  ~ES256|RS256  medium  read-only  accepted
    Algorithm with which an assertion is signed.
sasl.oauthbearer.assertion.file  string  null  -  medium  read-only  accepted
    File with a finished assertion to send for a token.
sasl.oauthbearer.assertion.template.file  string  null  -  medium  read-only  accepted
    File with header and claims that an assertion starts from.
sasl.oauthbearer.assertion.private.key.file  string  null  -  medium  read-only  accepted
    File with the key that signs assertions.
sasl.oauthbearer.assertion.private.key.passphrase  password  null  -  medium  read-only  accepted
    Password of the key that signs assertions.
sasl.oauthbearer.assertion.claim.aud  string  null  -  medium  read-only  accepted
    Audience to put into an assertion.
sasl.oauthbearer.assertion.claim.iss  string  null  -  medium  read-only  accepted
    Issuer to put into an assertion.
sasl.oauthbearer.assertion.claim.sub  string  null  -  medium  read-only  accepted
    Subject to put into an assertion.
sasl.oauthbearer.assertion.claim.exp.seconds  int  300  0..86400  low  read-only  accepted
    Life of an assertion.
sasl.oauthbearer.assertion.claim.nbf.seconds  int  60  0..3600  low  read-only  accepted
    How far before its making an assertion is already valid.
sasl.oauthbearer.assertion.claim.jti.include  boolean  false  -  medium  read-only  accepted
    Give each assertion an id of its own.
"""
