"""One partition's log: segments, appends, reads, syncing, retention, truncation, and recovery at a start.

Not here: which logs there are and where (`storage.directory`), compaction (`storage.cleaning`), roles.
"""
