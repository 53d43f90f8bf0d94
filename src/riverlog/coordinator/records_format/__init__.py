"""Kafka's own formats of the records in `__consumer_offsets` and `__transaction_state`.

Message tables as on the wire, with a number before each key (which record it is) and before each value (which
version). Kafka's tools read what we write, and we read what Kafka wrote. Not here: what the records mean.
"""
