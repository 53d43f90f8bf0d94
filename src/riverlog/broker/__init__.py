"""The broker's face to clients: sockets, framing, dispatch, one handler per API, fetch sessions.

A request is decided in the callback of its socket wherever that can be done without waiting; records are
never copied on their way out. Not here: what a partition is (`replication`), what is on disk (`storage`),
cluster decisions (`controller`), the order of starting and stopping (`node`).
"""
