"""The metadata store that the broker processes of one host share: a directory with a SQLite file and
sessions.

Not for processes of several hosts (ZooKeeper is), and not a server: every process has the file open.
"""
