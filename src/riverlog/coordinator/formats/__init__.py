"""Kafka's own formats of the records in `__consumer_offsets` and `__transaction_state`.

Message tables as on the wire, with a number before each key (which record it is) and before each value (which
version). Kafka's tools read what we write, and we read what Kafka wrote. Not here: what the records mean.

These tables are written by hand, unlike those of `wire.messages`: the schema that those are generated from
has what goes over the wire, and not the records of the internal topics. Records that Apache Kafka wrote, of
every kind that it still writes, hold them to its format (`tests/coordinator/test_record_formats.py`).
"""
