"""What a client of a Kafka cluster decides, as values: no socket, no clock, no sleep, no thread, no chance.

`connection` is one connection (bytes in, `events` out; `frames` cuts the bytes), `versions` what the broker
serves, `metadata` who leads and who coordinates, `retrying` what an error code means and how long to wait,
`new_batch` and `producing` the batches on their way. Time and chance are arguments. A driver moves the bytes
and does the waiting: `riverlog.client` has the blocking one. Not here: consumer groups, and records.
"""
