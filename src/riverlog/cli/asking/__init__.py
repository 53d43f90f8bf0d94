"""Asking a cluster: connections, topics, groups, transactions and positions, by any Kafka's public APIs."""
