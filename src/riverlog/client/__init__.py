"""A Kafka cluster asked in its own protocol, for what the client libraries do not offer.

Whole batches read (`reading`) and written with several requests on the way (`writing`), offsets (`offsets`),
transactions begun and ended for others (`transactions`, `open_transactions`, `transaction_dialect`);
`cluster` finds the right broker and tries again. All of these block; `peer_connection` is one connection on
the event loop. What they decide is in `core`, which knows no socket and no clock, so that each driver can use
it. Not here: consumer groups with members, building batches of records, TLS and SASL.
"""
