"""What a log remembers of its producers: sequences, epochs, open transactions, and their snapshots.

Not here: who decides about a transaction (`coordinator.transactions`).
"""
