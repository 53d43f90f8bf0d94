"""A partition on this node: its log, its role, its watermarks, and those who wait for them to move.

Not here: bytes on disk (`storage`), who leads what (`controller`), requests (`broker`). With one replica the
high watermark follows the log, or with `riverlog.acks.fsync` what is on disk; followers come later and move
the same watermark.
"""
