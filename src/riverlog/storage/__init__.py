"""The log on disk: segments, indexes, producer state, checkpoints and data directories, in Kafka's format.

Everything reaches the disk through the `Disk` port, so that the same code runs on a simulated disk. A log
is changed by one thread only, the event loop's; what may block (fsync, removal of files, writing
checkpoints) is split into a decision on that thread, I/O on files that nobody changes any more, and the
result, again on that thread. Not here: roles, replicas and waiting for the high watermark (`replication`),
and what a batch must look like to be accepted (`records`).
"""
