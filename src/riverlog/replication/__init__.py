"""A partition on this node: its log, its role, its watermarks, and those who wait for them to move; which
logs belong to partitions, and moving them between data directories while they are used.

Not here: bytes on disk (`storage`), who leads what (`controller`), requests (`broker`). What is committed is
decided in `watermark`, from the end of the log, what of it is on disk, the role, the ISR and how far its
members have come. What a leader knows of the other replicas is in `leading`, copying from leaders in
`following`.
"""
