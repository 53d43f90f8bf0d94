"""Group and transaction coordinators: shards that decide, and one runtime that makes their decisions lasting.

A shard decides `(records, replies, timers)` without I/O, clock or randomness; the runtime appends the records
to the internal topic, replays them and releases the replies when they are committed. Replay is the only
mutator of what a shard must remember, so a restart rebuilds exactly the state that was. Not here: the wire's
request handlers (`broker`) and the decisions about topics and brokers (`controller`).
"""
