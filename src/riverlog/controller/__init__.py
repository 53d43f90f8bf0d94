"""Decisions about the cluster: its topics, where their replicas go, who leads, what is configured.

The deciding modules (`topics`, `names`, `placement`) are pure; `controller` carries their plans out through
the metadata store. Not here: what a broker does with its own partitions.
"""
