"""The transaction coordinator: who may write under a transactional id, and how a transaction ends.

Pure: the states and their table, the decisions, the shard. With effects: `markers`, which writes the end of
a transaction into its partitions, and `coordinator`, the face to the request handlers. Not here: what a
partition knows of its open transactions (`storage`), and the offsets that a transaction carries (`groups`).
"""
