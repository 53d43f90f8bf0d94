"""Produce: writing batches, the template for requests that repeat one another, and transactions' consent.

Not here: validation of batches (`records`), the log (`storage`), what is committed (`replication`).
"""
