"""Asking brokers in their own protocol: one blocking connection, one question at a time.

For what the client libraries do not offer, such as the administration of transactions. Not here: producing,
consuming, retries, TLS and SASL; people have client libraries for that.
"""
