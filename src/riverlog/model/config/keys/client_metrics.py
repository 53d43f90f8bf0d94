"""Settings of one subscription to the metrics of clients (KIP-714)."""

TABLE = """
metrics  list  ""  -  medium  cluster-wide  accepted
    Prefixes of the metrics that matching clients push.
interval.ms  int  300000  -  medium  cluster-wide  accepted
    Pause between two pushes of a client.
match  list  ""  -  medium  cluster-wide  accepted
    Clients that are asked, as selector=pattern pairs.
"""
