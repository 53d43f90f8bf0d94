"""Three brokers beside three brokers: what copies cost, and how long a broker that ends is missed.

A cluster is a target of its own: three `riverlog serve` with one ZooKeeper server, `riverlog serve --brokers
3` with the store of one host, and three brokers of Apache Kafka that are their own controllers. Processor
time and memory are those of all processes of a cluster, ZooKeeper included.
"""
