"""Fetch: sessions, reading partitions as slices of files, and long polls.

Not here: how records are found in a log (`storage`), how slices are sent (`broker.net`).
"""
