"""Committed offsets: who may commit, what is kept for how long, and offsets within transactions.

Not here: who is a member of a group; a group's kind answers that (`groups.kinds`).
"""
