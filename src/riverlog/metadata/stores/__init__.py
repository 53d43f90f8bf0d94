"""The metadata store's adapters: embedded in a node, shared by the brokers of a host, and ZooKeeper.

All three stand behind `riverlog.model.metadata_store`, with one suite of tests. Not here: what the nodes of
the store mean, but for the paths that one of them has to treat apart.
"""
